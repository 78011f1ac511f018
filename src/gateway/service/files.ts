// GET of a file that `src/browser/` is made into, from memory, and of the scripts that sites load.
// A file is the same for everybody, so pages of every origin may load it, whatever origins may
// call the API.
import { hash } from "node:crypto"
import { gzipSync } from "node:zlib"
import * as Effect from "effect/Effect"
import { scripts, textOf } from "#browser/serving/files.ts"
import { isTagIn } from "../http/preconditions.ts"
import { acceptsGzip } from "../http/request.ts"
import type { ApiResponse } from "../http/response.ts"
import { type Endpoint, endpoint, operation } from "../operation.ts"

interface File {
  /** The path in `.built/`. */
  readonly name: string
  readonly mediaType: string
  readonly summary: string
  readonly headers: Readonly<Record<string, string>>
}

/** The operation that serves a file, which it reads once, at the first request. */
export const fileGet = (file: File) => {
  let known: ReturnType<typeof read> | undefined
  return operation({
    access: "anyone",
    crossSite: "open",
    exposes: ["ETag", "Cache-Control"],
    run: (_, { request }) =>
      Effect.sync((): ApiResponse => {
        known ??= read(file)
        const { headers } = request
        // The body of an entry of a batch is text.
        const isGzip = !request.batched && acceptsGzip(headers["accept-encoding"])
        const chosen = isGzip ? known.gzip : known.plain
        if (isTagIn(headers["if-none-match"], chosen.headers.ETag))
          return { status: 304, headers: chosen.headers }
        const typed = { ...chosen.headers, ...chosen.typeHeaders }
        return { status: 200, headers: typed, ...chosen.sent }
      }),
    doc: {
      summary: file.summary,
      parameters: ["ifNoneMatch"],
      responses: { 200: null, 304: null },
      textType: file.mediaType
    }
  })
}

/** The file in one coding, with a tag of its own (RFC 9110, section 8.8.3.3). */
const representationOf = ({ headers, mediaType }: File, body: string | Uint8Array) => {
  const isText = typeof body === "string"
  return {
    headers: {
      ETag: `"${hash("sha256", body, "base64url")}"`,
      "Cache-Control": "no-cache",
      Vary: "Accept-Encoding",
      ...headers
    },
    typeHeaders: {
      "Content-Type": `${mediaType}; charset=UTF-8`,
      ...(isText ? {} : { "Content-Encoding": "gzip" })
    },
    sent: isText ? { text: body } : { encoded: body }
  }
}

const read = (file: File) => {
  const text = textOf(file.name)
  // Compressed once, so at the level that is the slowest.
  const bytes = gzipSync(text, { level: 9 })
  return { plain: representationOf(file, text), gzip: representationOf(file, bytes) }
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

const about = {
  "client.js": {
    summary: "The module that subscribes a browser, for the pages of a site",
    headers: {}
  },
  "worker.js": {
    summary: "The service worker that shows pushes, or a part of the site's own",
    headers: { "Content-Security-Policy": workerPolicy }
  },
  "words.js": {
    summary: "Sentences about what client.js says, for the pages of a site",
    headers: {}
  }
}

const everywhere = {
  "Access-Control-Allow-Origin": "*",
  "Cross-Origin-Resource-Policy": "cross-origin"
}

export const fileEndpoints: ReadonlyArray<Endpoint<never>> = scripts.map((name) =>
  endpoint(name.replace(".", "-"), `/${name}`, {
    GET: fileGet({
      name,
      mediaType: "text/javascript",
      summary: about[name].summary,
      headers: { ...everywhere, ...about[name].headers }
    })
  })
)
