// The HTTP server of the metrics port. Anybody who reaches it may call without credentials, so each
// connection gets one response and ends after a fixed time, and their number is bounded.
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { isOwnHost } from "./host.ts"
import type { Page } from "./pages.ts"

// An import would load the undici of Node.js, too: 40 ms of CPU time at each start.
const { createServer } = process.getBuiltinModule("node:http")

/** Probes and Prometheus use one connection each. */
const connectionsMax = 64
/** Longer than a heartbeat may take (60 s), with the time that its request and response take. */
const connectionMillisMax = 75_000
/** How long a request may take to arrive. */
const requestMillis = 5_000
/** How often Node.js checks that time. */
const checkMillis = 1_000
const headerBytesMax = 8_192

/**
 * Destroys connections that are too old and, when there are too many, the oldest: clients that hold
 * connections then hinder no probe.
 */
const boundConnections = (server: Server): void => {
  const open = new Set<Socket>()
  server.on("connection", (socket: Socket) => {
    const [oldest] = open
    if (open.size >= connectionsMax) oldest?.destroy()
    open.add(socket)
    const timer = setTimeout(() => socket.destroy(), connectionMillisMax)
    socket.once("close", () => {
      clearTimeout(timer)
      open.delete(socket)
    })
  })
}

const send = (request: IncomingMessage, response: ServerResponse, page: Page): void => {
  const { headers, status, text } = page
  const length = Buffer.byteLength(text)
  response.writeHead(status, { ...headers, "Content-Length": length, Connection: "close" })
  response.end(request.method === "HEAD" ? undefined : text)
}

const foreignHost: Page = {
  status: 403,
  headers: { "Content-Type": "text/plain; charset=utf-8" },
  text:
    "This name may be that of a foreign site. Use the address, or set " +
    "BELLCAST_METRICS_ADDRESS to this name and the port.\n"
}

/** Load balancers may name any Host, and it says nothing. */
const isForEverybody = (target: string): boolean => target === "/__lbheartbeat__"

/**
 * A server that does not listen yet. `respond` computes the page of a request and calls back; it
 * never fails. `names`: hosts by which it may be called, beside those of `isOwnHost`.
 */
export const makeServer = (
  names: ReadonlyArray<string>,
  respond: (method: string, target: string, done: (page: Page) => void) => void
): Server => {
  const served = new WeakSet<Socket>()
  const server = createServer(
    {
      headersTimeout: requestMillis,
      requestTimeout: requestMillis,
      connectionsCheckingInterval: checkMillis,
      maxHeaderSize: headerBytesMax,
      requireHostHeader: false
    },
    (request, response) => {
      const { headers, method = "", socket, url = "" } = request
      if (served.has(socket)) return void socket.pause()
      served.add(socket)
      if (!isForEverybody(url) && !isOwnHost(headers.host, names))
        return send(request, response, foreignHost)
      // The body, if any, is neither read nor kept: the connection ends with the response.
      respond(method, url, (page) => send(request, response, page))
    }
  )
  boundConnections(server)
  return server
}
