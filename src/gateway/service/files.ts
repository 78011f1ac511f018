// GET of the files that sites load, from memory. Pages of every origin may load them, whatever
// origins may call the API: they are the same for everybody.
import { hash } from "node:crypto"
import * as Effect from "effect/Effect"
import { scripts, textOf } from "#browser/serving/files.ts"
import { isTagIn } from "../http/preconditions.ts"
import type { ApiResponse } from "../http/request.ts"
import type { Endpoint, Operation } from "../operation.ts"

type Headers = Readonly<Record<string, string>>

interface File {
  /** The last part of the path, and the name in `src/browser/`. */
  readonly name: string
  readonly mediaType: string
  readonly summary: string
  readonly headers: Headers
}

/**
 * The policy that a browser puts on the worker itself when this file is its script: it calls the
 * API and shows images of notifications. Another script that imports it brings its own policy.
 */
const workerPolicy = [
  "default-src 'none'",
  "connect-src 'self' https:",
  "img-src 'self' https: data:",
  "frame-ancestors 'none'",
  "base-uri 'none'"
].join("; ")

const summaries = {
  "client.js": "The module that subscribes a browser, for the pages of a site",
  "worker.js": "The service worker that shows pushes, or a part of the site's own"
}

const files: ReadonlyArray<File> = scripts.map((name) => ({
  name,
  mediaType: "text/javascript",
  summary: summaries[name],
  headers: name === "worker.js" ? { "Content-Security-Policy": workerPolicy } : {}
}))

/** Reads a file once, at its first request. */
const fileGet = ({ headers: given, mediaType, name, summary }: File): Operation<void> => {
  let known: { readonly text: string; readonly headers: Headers } | undefined
  const read = () => {
    const text = textOf(name)
    const headers = {
      ETag: `"${hash("sha256", text, "base64url")}"`,
      "Cache-Control": "no-cache",
      "Access-Control-Allow-Origin": "*",
      "Cross-Origin-Resource-Policy": "cross-origin",
      ...given
    }
    return { text, headers }
  }
  return {
    access: "anyone",
    crossSite: "open",
    exposes: ["ETag", "Cache-Control"],
    run: (_, { request }) =>
      Effect.sync((): ApiResponse => {
        known ??= read()
        const { headers, text } = known
        if (isTagIn(request.headers["if-none-match"], headers["ETag"]!))
          return { status: 304, headers, errno: 0 }
        const typed = { ...headers, "Content-Type": `${mediaType}; charset=UTF-8` }
        return { status: 200, headers: typed, html: text, errno: 0 }
      }),
    doc: {
      summary,
      parameters: ["ifNoneMatch"],
      responses: { 200: null, 304: null },
      textType: mediaType
    }
  }
}

export const fileEndpoints: ReadonlyArray<Endpoint> = files.map((file) => ({
  name: file.name.replace(".", "-"),
  path: `/${file.name}`,
  allow: ["GET", "HEAD", "OPTIONS"],
  operations: { GET: fileGet(file) }
}))
