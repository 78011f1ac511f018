// The surroundings of the service in a login by mail: a site with the page of the README, and a
// proxy that gives the service https.
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { createServer, request as requestOf, type Server } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { AddressInfo } from "node:net"
import { pipeline } from "node:stream"
import { testCertificate } from "#test/tls.ts"

export interface Listening extends AsyncDisposable {
  readonly port: number
}

const listen = async (server: Server): Promise<Listening> => {
  await once(server.listen(0, "127.0.0.1"), "listening")
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, "close")
    }
  }
}

const readme = readFileSync(new URL("../../../src/identity/README.md", import.meta.url), "utf8")
const [, section = ""] = readme.split("### portier\n")
const [, html = ""] = /```html\n(.*?)```/s.exec(section) ?? []

/** Serves the page of the README at `http://localhost:PORT/`, for the API at an origin. */
export const startSite = (api: string): Promise<Listening> =>
  listen(
    createServer((request, response) => {
      if (request.url !== "/") return void response.writeHead(404).end()
      const page = html
        .replaceAll("https://push.example.org", api)
        .replaceAll("https://app.example.org", `http://${request.headers.host}`)
      response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(page)
    })
  )

/** Takes https for localhost and passes on to a port of this machine. */
export const startTlsProxy = (to: number): Promise<Listening> =>
  listen(
    createTlsServer(testCertificate(), (request, response) => {
      const { headers, method, url: path } = request
      const onward = requestOf({ host: "127.0.0.1", port: to, method, path, headers })
      onward.on("response", (upstream) => {
        response.writeHead(upstream.statusCode!, upstream.headers)
        pipeline(upstream, response, () => {})
      })
      pipeline(request, onward, (error) => error && response.destroy())
    })
  )
