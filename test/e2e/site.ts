// Serves site/ on http://localhost: an origin of its own, and a secure context without TLS.
import { once } from "node:events"
import { readFile } from "node:fs/promises"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

const files: Readonly<Record<string, readonly [file: string, type: string]>> = {
  "/": ["index.html", "text/html"],
  "/api.js": ["api.js", "text/javascript"],
  "/page.js": ["page.js", "text/javascript"],
  "/worker.js": ["worker.js", "text/javascript"]
}

export interface Site extends AsyncDisposable {
  readonly url: string
}

const answer = async (response: ServerResponse, path: string, worker: string | undefined) => {
  const entry = files[path]
  if (entry === undefined) return void response.writeHead(404).end()
  const isGiven = path === "/worker.js" && worker !== undefined
  const content = isGiven ? worker : await readFile(new URL(`site/${entry[0]}`, import.meta.url))
  response
    .writeHead(200, { "content-type": `${entry[1]}; charset=utf-8`, "cache-control": "no-store" })
    .end(content)
}

/** `worker`: another service worker than that of site/. */
export const startSite = async (worker?: string): Promise<Site> => {
  const server = createServer((request, response) => {
    void answer(response, new URL(request.url ?? "/", "http://localhost").pathname, worker).catch(
      () => response.destroy()
    )
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  }
}
