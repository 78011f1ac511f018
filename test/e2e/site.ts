// Serves pages on http://localhost: an origin of its own, and a secure context without TLS.
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface Site extends AsyncDisposable {
  readonly url: string
}

export interface SiteFile {
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
  /** Default 200. */
  readonly status?: number
}

/** By path; read for each request, so a test may change them. */
export type SiteFiles = Record<string, string | SiteFile>

const answer = (response: ServerResponse, path: string, files: SiteFiles) => {
  const file = files[path]
  if (file === undefined) return void response.writeHead(404).end()
  const { body, headers, status = 200 } = typeof file === "string" ? { body: file } : file
  const type = path.endsWith(".js") ? "text/javascript" : "text/html"
  response
    .writeHead(status, {
      "content-type": `${type}; charset=utf-8`,
      "cache-control": "no-store",
      ...headers
    })
    .end(body)
}

export const startPages = async (files: SiteFiles): Promise<Site> => {
  const server = createServer((request, response) =>
    answer(response, new URL(request.url ?? "/", "http://localhost").pathname, files)
  )
  await once(server.listen(0, "127.0.0.1"), "listening")
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  }
}

/** The site in site/. */
export const startSite = (): Promise<Site> => {
  const read = (file: string) => readFileSync(new URL(`site/${file}`, import.meta.url), "utf8")
  return startPages({
    "/": read("index.html"),
    "/api.js": read("api.js"),
    "/page.js": read("page.js"),
    "/worker.js": read("worker.js")
  })
}
