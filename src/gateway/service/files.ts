// GET of the scripts that sites load, from memory. Pages of every origin may load them, whatever
// origins may call the API: they are the same for everybody.
import { hash } from "node:crypto"
import * as Effect from "effect/Effect"
import { scripts, textOf } from "#browser/serving/files.ts"
import { isTagIn } from "../http/preconditions.ts"
import type { ApiResponse } from "../http/request.ts"
import type { Endpoint, Operation } from "../operation.ts"

const mediaType = "text/javascript"

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
  }
}

const read = (name: keyof typeof about) => {
  const text = textOf(name)
  const headers = {
    ETag: `"${hash("sha256", text, "base64url")}"`,
    "Cache-Control": "no-cache",
    "Access-Control-Allow-Origin": "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
    ...about[name].headers
  }
  return { text, headers }
}

/** Reads the script once, at its first request. */
const scriptGet = (name: keyof typeof about): Operation<void> => {
  let known: ReturnType<typeof read> | undefined
  return {
    access: "anyone",
    crossSite: "open",
    exposes: ["ETag", "Cache-Control"],
    run: (_, { request }) =>
      Effect.sync((): ApiResponse => {
        known ??= read(name)
        const { headers, text } = known
        if (isTagIn(request.headers["if-none-match"], headers.ETag))
          return { status: 304, headers, errno: 0 }
        const typed = { ...headers, "Content-Type": `${mediaType}; charset=UTF-8` }
        return { status: 200, headers: typed, text, errno: 0 }
      }),
    doc: {
      summary: about[name].summary,
      parameters: ["ifNoneMatch"],
      responses: { 200: null, 304: null },
      textType: mediaType
    }
  }
}

export const fileEndpoints: ReadonlyArray<Endpoint> = scripts.map((name) => ({
  name: name.replace(".", "-"),
  path: `/${name}`,
  allow: ["GET", "HEAD", "OPTIONS"],
  operations: { GET: scriptGet(name) }
}))
