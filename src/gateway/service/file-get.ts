// GET of a file of `src/browser/`, from memory. It is the same for everybody.
import { hash } from "node:crypto"
import * as Effect from "effect/Effect"
import { textOf } from "#browser/serving/files.ts"
import { isTagIn } from "../http/preconditions.ts"
import type { ApiResponse } from "../http/request.ts"
import type { Operation } from "../operation.ts"

export interface File {
  /** The path in `src/browser/`. */
  readonly name: string
  readonly mediaType: string
  readonly summary: string
  readonly headers: Readonly<Record<string, string>>
}

const read = ({ headers, name }: File) => {
  const text = textOf(name)
  const ETag = `"${hash("sha256", text, "base64url")}"`
  return { text, headers: { ETag, "Cache-Control": "no-cache", ...headers } }
}

/** Reads the file once, at its first request. */
export const fileGet = (file: File): Operation<void> => {
  let known: ReturnType<typeof read> | undefined
  return {
    access: "anyone",
    crossSite: "open",
    exposes: ["ETag", "Cache-Control"],
    run: (_, { request }) =>
      Effect.sync((): ApiResponse => {
        known ??= read(file)
        const { headers, text } = known
        if (isTagIn(request.headers["if-none-match"], headers.ETag))
          return { status: 304, headers, errno: 0 }
        const typed = { ...headers, "Content-Type": `${file.mediaType}; charset=UTF-8` }
        return { status: 200, headers: typed, text, errno: 0 }
      }),
    doc: {
      summary: file.summary,
      parameters: ["ifNoneMatch"],
      responses: { 200: null, 304: null },
      textType: file.mediaType
    }
  }
}
