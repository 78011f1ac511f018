// A push service on loopback for a real Firefox. It speaks the autopush protocol over a WebSocket,
// takes pushes over HTTP with the checks of the real one (404, 401, 410, 413, 400), and sends again
// after a reconnect what Firefox did not acknowledge. It cannot decrypt messages.
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { type RawData, type WebSocket, WebSocketServer } from "ws"
import { type Acknowledgement, Browser, type Frame } from "./autopush-browser.ts"
import { Condition } from "./condition.ts"
import { readBody, refusalOf } from "./push-checks.ts"

export interface Autopush extends AsyncDisposable {
  /** For Firefox's dom.push.serverURL. */
  readonly socketUrl: string
  readonly browsers: ReadonlyArray<Browser>
  readonly connected: boolean
  /** Messages that no browser has acknowledged. */
  readonly unacknowledged: number
  /** One line for each push that was refused, oldest first: status and reason. */
  readonly refusals: ReadonlyArray<string>
  readonly acknowledgements: ReadonlyArray<Acknowledgement>
  /** Cuts the connection and takes no new one until `goOnline`. */
  readonly goOffline: () => void
  readonly goOnline: () => void
  /** Closes the connection; the browser gets a new UAID, so all its subscriptions are void. */
  readonly forget: () => void
  /**
   * Resolves as soon as the predicate holds; it is checked after every frame and every push.
   * Rejects after the timeout.
   */
  readonly waitFor: (
    predicate: (autopush: Autopush) => boolean,
    timeoutMillis?: number
  ) => Promise<void>
}

const unknown = { status: 404, reason: "no such subscription" }

export const startAutopush = async (): Promise<Autopush> => {
  const browsers: Array<Browser> = []
  const refusals: Array<string> = []
  const condition = new Condition<Autopush>(() => autopush)
  let online = true

  const hello = (socket: WebSocket, uaid: string | undefined): Browser => {
    const known = browsers.find((each) => each.uaid === uaid && !each.retired)
    const browser = known ?? new Browser(origin)
    if (known === undefined) browsers.push(browser)
    browser.greet(socket)
    return browser
  }

  const sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: () => "push-notification"
  })
  sockets.on("connection", (socket) => {
    let browser: Browser | undefined
    socket.on("message", (data: RawData) => {
      const frame = JSON.parse(String(data)) as Frame
      if (frame.messageType === "hello") browser = hello(socket, frame.uaid)
      else browser?.hear(frame)
      condition.changed()
    })
    socket.on("close", () => {
      if (browser?.socket === socket) browser.socket = undefined
      condition.changed()
    })
  })

  const take = async (
    request: IncomingMessage,
    body: Buffer
  ): Promise<[status: number, headers?: Record<string, string>]> => {
    const endpoint = `${origin}${request.url}`
    const all = browsers.flatMap(({ subscriptions }) => [...subscriptions.values()])
    const subscription = all.find(({ agent }) => agent.subscription.endpoint === endpoint)
    const refusal =
      subscription === undefined
        ? unknown
        : await refusalOf(subscription.agent, request, body, origin)
    if (subscription === undefined || refusal !== undefined) {
      const { status, reason } = refusal ?? unknown
      refusals.push(`${status} ${reason}`)
      return [status]
    }
    const { browser, channelID } = subscription
    const ttl = String(request.headers["ttl"])
    return [201, { location: `${origin}/m/${browser.push(channelID, body, Number(ttl))}`, ttl }]
  }

  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const [status, headers] = await take(request, await readBody(request, true))
    response.writeHead(status, { "content-length": 0, ...headers }).end()
    condition.changed()
  }

  const server = createServer(
    (request, response) => void answer(request, response).catch(() => response.destroy())
  )
  server.on("upgrade", (request, socket, head) => {
    if (online)
      sockets.handleUpgrade(request, socket, head, (opened) =>
        sockets.emit("connection", opened, request)
      )
    else socket.destroy()
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  const { port } = server.address() as AddressInfo
  /** Scheme, host and port of the endpoints: the `aud` that it accepts. */
  const origin = `http://127.0.0.1:${port}`
  const cut = () => {
    for (const socket of sockets.clients) socket.terminate()
  }

  const autopush: Autopush = {
    socketUrl: `ws://127.0.0.1:${port}/`,
    refusals,
    browsers,
    get acknowledgements() {
      return browsers.flatMap(({ acknowledgements }) => acknowledgements)
    },
    get connected() {
      return browsers.some(({ socket }) => socket !== undefined)
    },
    get unacknowledged() {
      return browsers.reduce((sum, { unacknowledged }) => sum + unacknowledged.size, 0)
    },
    goOffline: () => {
      online = false
      cut()
    },
    goOnline: () => {
      online = true
    },
    forget: () => {
      for (const browser of browsers) browser.retire()
      cut()
    },
    waitFor: (predicate, timeoutMillis = 40_000) =>
      condition.waitFor(predicate, timeoutMillis, () =>
        JSON.stringify({ refusals, acknowledgements: autopush.acknowledgements })
      ),
    [Symbol.asyncDispose]: async () => {
      cut()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  }
  return autopush
}
