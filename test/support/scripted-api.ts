// A few routes of the HTTP API with scripted responses, for tests of the CLI; records the requests.
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"

export interface ApiCall {
  /** Method and path, e.g. `POST /v1/subscriptions`. */
  readonly call: string
  readonly authorization: string | undefined
  readonly body: string
}

export interface ScriptedAnswer {
  readonly status: number
  readonly body: unknown
}

/** Serves `answers` by method and path (404 for others) on loopback; port 0 takes a free one. */
export const startScriptedApi = async (
  answers: Readonly<Record<string, ScriptedAnswer>>,
  port = 0
) => {
  const calls: Array<ApiCall> = []
  const server = createServer(async (request, response) => {
    const call = `${request.method} ${request.url}`
    calls.push({ call, authorization: request.headers.authorization, body: await text(request) })
    const { status, body } = answers[call] ?? {
      status: 404,
      body: { code: 404, errno: 111, error: "Not Found", message: `no ${call}` }
    }
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
  })
  const asked = once(server, "request")
  server.listen(port, "127.0.0.1")
  await once(server, "listening")
  return {
    port: (server.address() as AddressInfo).port,
    calls,
    /** Resolves with the first request. */
    asked,
    [Symbol.asyncDispose]: async () => {
      server.close()
      server.closeAllConnections()
    }
  }
}
