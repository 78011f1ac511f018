// One push service of the rig: an HTTP/1.1 or HTTP/2 server on loopback that checks VAPID, decrypts
// every push, and behaves as badly as it is told to.
import { hash } from "node:crypto"
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { createSecureServer, type ServerHttp2Session } from "node:http2"
import type { AddressInfo, Server, Socket } from "node:net"
import { readBody } from "../../support/push-checks.ts"
import { testCertificate } from "../../support/tls.ts"
import type { Said } from "../model/model.ts"
import { type Behaviour, type Receipt, well } from "./behaviour.ts"
import type { Browser } from "./browser.ts"
import { vapidCheck } from "./vapid.ts"

export interface OriginEvents<Subscription> {
  /** Undefined: no such endpoint. */
  readonly find: (
    path: string
  ) =>
    | { readonly browser: Browser; readonly isGone: boolean; readonly of: Subscription }
    | undefined
  /** A push came, at this time of performance.now(). Its receipt follows. */
  readonly arrived: (said: Said, at: number) => void
  /** `marker`: the broadcast that the push names. */
  readonly received: (of: Subscription, marker: string, receipt: Receipt) => void
  /** The sender did something that no sender may do. */
  readonly wrong: (what: string) => void
}

export interface Origin extends AsyncDisposable {
  readonly name: string
  readonly protocol: "h1" | "h2"
  readonly origin: string
  readonly behave: (behaviour: Behaviour) => void
  /** Pushes refused because of their token: a worker whose clock is wrong sends such. */
  readonly refusedTokens: () => number
}

/** Throws when a push cannot be opened, or names no broadcast or two. */
const saidIn = (browser: Browser, body: Buffer, topic: unknown): Said => {
  const empty = { marker: topic, edition: 0, failingShare: 0 }
  const { edition, failingShare, marker } =
    body.length === 0 ? empty : JSON.parse(browser.open(body).toString())
  if (typeof marker !== "string") throw new Error("a push names no broadcast")
  if (topic !== undefined && topic !== marker) throw new Error("Topic is that of another broadcast")
  return { payload: marker, edition, failingShare }
}

/** A response that did not leave whole: the sender cannot know that its push was taken. */
const cutOff = (receipt: Receipt): Receipt => (receipt === "accepted" ? "unanswered" : receipt)

let cuts = 0

/** Every other time in the middle of the status line, else in the middle of the body. */
const cut = (response: ServerResponse, told: (receipt: Receipt) => void) => {
  if (cuts++ % 2 === 0) {
    told("unanswered")
    return void response.destroy()
  }
  told("halved")
  response.writeHead(201, { "content-length": "10" })
  response.write("half", () => response.destroy())
}

/** GOAWAY after so many streams, as servers send it before they restart. */
const makeLeaving = () => {
  const streams = new WeakMap<ServerHttp2Session, number>()
  /** Whether the stream came after GOAWAY, so that it counts as never seen. */
  return (request: IncomingMessage, max: number): boolean => {
    const stream = (
      request as unknown as { stream?: { id?: number; session?: ServerHttp2Session } }
    ).stream
    const session = stream?.session
    if (session === undefined || session.destroyed) return false
    const count = (streams.get(session) ?? 0) + 1
    streams.set(session, count)
    if (count === max) {
      session.goaway(0, stream?.id ?? 0)
      setTimeout(() => session.destroy(), 500)
    }
    return count > max
  }
}

/** Whether this is the first push to one of the browsers that it fails for. */
const makeFailsOnce = () => {
  const failed = new Set<string>()
  return ({ failingShare, payload }: Said, path: string): boolean => {
    const name = `${payload} ${path}`
    if (failed.has(name) || hash("sha256", name, "buffer").readUInt8() >= failingShare * 256)
      return false
    failed.add(name)
    return true
  }
}

export const startOrigin = async <Subscription>(
  name: string,
  protocol: Origin["protocol"],
  publicKey: string,
  events: OriginEvents<Subscription>
): Promise<Origin> => {
  let behaviour: Behaviour = well
  let refusedTokens = 0
  const sockets = new Set<Socket>()
  const isAfterGoaway = makeLeaving()
  const failsOnce = makeFailsOnce()

  const play = (response: ServerResponse, told: (receipt: Receipt) => void) => {
    const answer = (status: number, receipt: Receipt, headers: Record<string, string> = {}) => {
      let isWhole = false
      response.once("finish", () => {
        isWhole = true
        told(receipt)
      })
      response.once("close", () => (isWhole ? undefined : told(cutOff(receipt))))
      response.writeHead(status, headers).end()
    }
    const current = behaviour
    switch (current.kind) {
      case "slow":
        setTimeout(() => (response.destroyed ? undefined : answer(201, "accepted")), current.millis)
        return
      case "silent":
        return told("unanswered")
      case "throttling":
        return answer(429, "refused", { "retry-after": String(current.seconds) })
      case "gone":
        return answer(410, "gone")
      case "failing":
        return answer(current.status, "refused")
      case "cutting":
        return cut(response, told)
      default:
        return answer(201, "accepted")
    }
  }

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    if (behaviour.kind === "leaving" && isAfterGoaway(request, behaviour.streams)) return
    const at = performance.now()
    // A killed sender ends in mid-body. That is no fault of the push.
    const body = await readBody(request, true).catch(() => undefined)
    if (body === undefined) return void response.destroy()
    const found = events.find(request.url ?? "")
    if (found === undefined) {
      events.wrong(`a push to an endpoint that ${name} never had`)
      return void response.writeHead(404).end()
    }
    const refusal = isFromUs(request.headers.authorization)
    if (refusal !== undefined) {
      refusedTokens++
      if (!/expired|more than a day/.test(refusal)) events.wrong(`VAPID: ${refusal}`)
      return void response.writeHead(403).end(refusal)
    }
    const said = saidIn(found.browser, body, request.headers["topic"])
    events.arrived(said, at)
    const told = (receipt: Receipt) => events.received(found.of, said.payload, receipt)
    if (found.isGone) {
      told("gone")
      return void response.writeHead(410).end()
    }
    if (!failsOnce(said, request.url!)) return play(response, told)
    told("refused")
    response.writeHead(503).end()
  }

  const onRequest = (request: IncomingMessage, response: ServerResponse) =>
    void handle(request, response).catch((error) => {
      events.wrong(String(error))
      response.writeHead(400).end()
    })

  const server = (
    protocol === "h2"
      ? createSecureServer(
          { ...testCertificate(), allowHTTP1: true },
          onRequest as unknown as Parameters<typeof createSecureServer>[1]
        )
      : createServer({ keepAliveTimeout: 600_000 }, onRequest)
  ) as Server
  server.on("connection", (socket: Socket) => {
    sockets.add(socket.on("error", () => {}).once("close", () => sockets.delete(socket)))
    if (behaviour.kind === "down") socket.destroy()
  })
  server.on("sessionError", () => {})
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  const origin = protocol === "h2" ? `https://localhost:${port}` : `http://127.0.0.1:${port}`
  const isFromUs = vapidCheck(publicKey, origin)
  const closeAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    name,
    protocol,
    origin,
    behave: (next) => {
      behaviour = next
      if (next.kind === "down") closeAll()
    },
    refusedTokens: () => refusedTokens,
    [Symbol.asyncDispose]: async () => {
      closeAll()
      server.close()
    }
  }
}
