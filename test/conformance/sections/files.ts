// Contract 5.7: the files that sites load.
import { readFileSync } from "node:fs"
import { expect } from "vitest"
import { type Case, define } from "../table.ts"

const source = (path: string) =>
  readFileSync(new URL(`../../../src/browser${path}`, import.meta.url), "utf8")

const served = {
  "Content-Type": "text/javascript; charset=UTF-8",
  "X-Content-Type-Options": "nosniff",
  "Cache-Control": "no-cache",
  ETag: /^"[\w-]+"$/,
  "Access-Control-Allow-Origin": "*",
  "Cross-Origin-Resource-Policy": "cross-origin"
}

export const files: ReadonlyArray<Case> = [
  ...["/client.js", "/worker.js"].flatMap((path) => [
    define({
      name: `serves ${path} to everybody`,
      request: { method: "GET", path, as: null },
      expected: { status: 200, headers: served },
      also: ({ text }) => expect(text).toBe(source(path))
    }),
    define({
      name: `says how large ${path} is`,
      request: { method: "HEAD", path, as: null },
      expected: {
        status: 200,
        headers: { ...served, "Content-Length": String(Buffer.byteLength(source(path))) }
      }
    }),
    define<string>({
      name: `does not send ${path} again to those who have it`,
      given: async (api) =>
        (await api.send({ method: "GET", path, as: null })).headers["etag"] as string,
      request: (_, tag) => ({
        method: "GET",
        path,
        as: null,
        headers: { "If-None-Match": `"other", W/${tag}` }
      }),
      expected: (_, tag) => ({
        status: 304,
        headers: { ...served, "Content-Type": null, ETag: tag }
      })
    })
  ]),
  define({
    name: "sends a file of another version to those who have a former one",
    request: {
      method: "GET",
      path: "/worker.js",
      as: null,
      headers: { "If-None-Match": '"former"' }
    },
    expected: { status: 200 }
  }),
  define({
    name: "lets a worker call the API, and load images of notifications",
    request: { method: "GET", path: "/worker.js", as: null },
    expected: {
      status: 200,
      headers: {
        "Content-Security-Policy": /connect-src 'self' https:; img-src 'self' https: data:;/
      }
    }
  })
]
