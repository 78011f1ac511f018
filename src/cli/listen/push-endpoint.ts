// A push service for one subscription on loopback: the endpoint that `bellcast listen` registers.
import { randomBytes } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import { checkVapid, makeReceiverKeys, openPush } from "./push-receiver.ts"

/** The endpoint could not be opened on loopback. */
class EndpointFailed extends Schema.TaggedError<EndpointFailed>()("EndpointFailed", {
  cause: Schema.Defect()
}) {
  override get message() {
    return `cannot open a push endpoint on 127.0.0.1: ${String(this.cause)}`
  }
}

/** A decrypted push. `payload` is empty for a push without a body. */
export interface Arrived {
  readonly _tag: "Arrived"
  readonly payload: string
  readonly receivedAtMillis: number
}

/** A push that was refused, with the status of the response and the reason. */
export interface Refused {
  readonly _tag: "Refused"
  readonly status: number
  readonly reason: string
}

export type Push = Arrived | Refused

/** RFC 8030 section 7.2: a push service may refuse more. */
const bodyBytesMax = 4096
/** Pushes that wait to be printed. Further ones get 503 with Retry-After. */
const waitingPushesMax = 1024

const readBody = async (request: IncomingMessage): Promise<Buffer> => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    if (bytes <= bodyBytesMax) chunks.push(chunk)
    bytes += chunk.length
  }
  return Buffer.concat(chunks)
}

const listening = (server: ReturnType<typeof createServer>) =>
  Effect.callback<number, EndpointFailed>((resume) => {
    server.once("error", (cause) => resume(Effect.fail(new EndpointFailed({ cause }))))
    server.listen(0, "127.0.0.1", () =>
      resume(Effect.succeed((server.address() as AddressInfo).port))
    )
  })

/** The headers that a client needs to go on (RFC 9110 sections 10.2.3, 11.6.1 and 15.5.6). */
const headersByStatus: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  401: { "www-authenticate": "vapid" },
  405: { allow: "POST" },
  503: { "retry-after": "1" }
}

/**
 * Opens the endpoint until the scope closes: a random port, an unguessable path, new keys. With a
 * VAPID key, pushes with another signature are refused; without it, signatures are not checked.
 */
export const openPushEndpoint = Effect.fnUntraced(function* (
  applicationServerKey: string | undefined
) {
  const clock = yield* Clock.Clock
  const pushes = yield* Queue.bounded<Push>(waitingPushesMax)
  const keys = makeReceiverKeys()
  const path = `/push/${randomBytes(32).toString("base64url")}`
  let origin = ""

  const received = async (request: IncomingMessage, body: Buffer): Promise<Push> => {
    const receivedAtMillis = clock.currentTimeMillisUnsafe()
    const refused = (status: number, reason: string): Push => ({ _tag: "Refused", status, reason })
    if (applicationServerKey !== undefined) {
      const expected = { audience: origin, nowMillis: receivedAtMillis, applicationServerKey }
      const vapid = await checkVapid(request.headers.authorization, expected)
      if (!vapid.ok) return refused(vapid.status, vapid.reason)
    }
    if (body.length > bodyBytesMax) return refused(413, `the body is over ${bodyBytesMax} bytes`)
    if (!/^\d+$/.test(String(request.headers["ttl"])))
      return refused(400, "TTL is missing or no integer")
    try {
      const payload = body.length === 0 ? "" : openPush(keys, body).toString()
      return { _tag: "Arrived", payload, receivedAtMillis }
    } catch (error) {
      return refused(400, `cannot be decrypted: ${String(error)}`)
    }
  }

  const statusOf = async (request: IncomingMessage, body: Buffer): Promise<number> => {
    if (request.url !== path) return 404
    if (request.method !== "POST") return 405
    const push = await received(request, body)
    if (!Queue.offerUnsafe(pushes, push)) return 503
    return push._tag === "Arrived" ? 201 : push.status
  }

  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    const status = await statusOf(request, await readBody(request))
    response.writeHead(status, { "content-length": 0, ...headersByStatus[status] }).end()
  }

  // If the sender disconnects within the body, there is no push.
  const server = createServer(
    (request, response) => void respond(request, response).catch(() => response.destroy())
  )
  const close = Effect.sync(() => {
    server.close()
    server.closeAllConnections()
  })
  const port = yield* Effect.acquireRelease(listening(server), () => close)
  origin = `http://127.0.0.1:${port}`
  return {
    subscription: { endpoint: origin + path, keys: { auth: keys.auth, p256dh: keys.p256dh } },
    pushes
  }
})
