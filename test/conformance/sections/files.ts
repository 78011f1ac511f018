// Contract 5.7: the files that sites load.
import { readFileSync } from "node:fs"
import { expect } from "vitest"
import { type Case, define } from "../table.ts"

const source = (path: string) =>
  readFileSync(new URL(`../../../.built${path}`, import.meta.url), "utf8")

/** Bytes of each file, gzipped. */
const bytesMax = { "/client.js": 7_168, "/worker.js": 3_000, "/words.js": 1_200 }

const served = {
  "Content-Type": "text/javascript; charset=UTF-8",
  "X-Content-Type-Options": "nosniff",
  "Cache-Control": "no-cache",
  Vary: "Accept-Encoding",
  ETag: /^"[\w-]+"$/,
  "Access-Control-Allow-Origin": "*",
  "Cross-Origin-Resource-Policy": "cross-origin"
}

export const files: ReadonlyArray<Case> = [
  ...(["/client.js", "/worker.js", "/words.js"] as const).flatMap((path) => [
    define({
      name: `serves ${path} to everybody`,
      request: { method: "GET", path, as: null },
      expected: { status: 200, headers: { ...served, "Content-Encoding": null } },
      also: ({ text }) => expect(text).toBe(source(path))
    }),
    define({
      name: `sends ${path} small to those who accept gzip`,
      request: {
        method: "GET",
        path,
        as: null,
        headers: { "Accept-Encoding": "br, gzip;q=0.8" }
      },
      expected: { status: 200, headers: { ...served, "Content-Encoding": "gzip" } },
      also: ({ headers, text }) => {
        expect(text).toBe(source(path))
        expect(Number(headers["content-length"])).toBeLessThanOrEqual(bytesMax[path])
      }
    }),
    define<string>({
      name: `has another tag for ${path} in gzip`,
      given: async (api) =>
        (await api.send({ method: "GET", path, as: null })).headers["etag"] as string,
      request: (_, tag) => ({
        method: "GET",
        path,
        as: null,
        headers: { "Accept-Encoding": "gzip", "If-None-Match": tag }
      }),
      expected: { status: 200, headers: { ...served, "Content-Encoding": "gzip" } }
    }),
    define({
      name: `sends ${path} as it is to those who refuse gzip`,
      request: { method: "GET", path, as: null, headers: { "Accept-Encoding": "gzip;q=0, br" } },
      expected: { status: 200, headers: { ...served, "Content-Encoding": null } },
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
