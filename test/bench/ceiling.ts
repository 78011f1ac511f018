// The ceiling: our encryption, cached VAPID header and undici alone, without a log: what a worker
// could reach if remembering cost nothing. Keys are decoded beforehand and a key pair serves 32
// messages, as in a worker. Same order and answer as loop.ts.
import { Pool } from "undici"
import webpush, { type PushSubscription } from "web-push"
import { freshKeyPair, pad, type Recipient, recipientOf, seal } from "#delivery/push/encrypt.ts"

const inFlight = 64
const warmUp = 3_000

interface Order {
  readonly subscriptions: ReadonlyArray<PushSubscription>
  readonly vapid: { readonly publicKey: string; readonly privateKey: string }
  readonly payload: string
}

const messagesPerPair = 32
const recipients = new Map<string, Recipient>()

const run = async ({ payload, subscriptions, vapid }: Order) => {
  const { origin } = new URL(subscriptions[0]!.endpoint)
  const pool = new Pool(origin, { connections: inFlight, allowH2: false })
  const authorization = webpush.getVapidHeaders(
    origin,
    "mailto:bench@example.com",
    vapid.publicKey,
    vapid.privateKey,
    "aes128gcm"
  ).Authorization
  const padded = pad(Buffer.from(payload))
  const headers = {
    ttl: "60",
    urgency: "normal",
    authorization,
    "content-encoding": "aes128gcm",
    "content-type": "application/octet-stream"
  }
  let pair = freshKeyPair()
  let sealed = 0
  const send = ({ endpoint }: PushSubscription) =>
    new Promise<void>((resolve, reject) => {
      if (++sealed % messagesPerPair === 0) pair = freshKeyPair()
      const body = seal(padded, recipients.get(endpoint)!, pair)
      pool.dispatch(
        { method: "POST", path: endpoint.slice(origin.length), headers, body },
        {
          onRequestStart: () => {},
          onResponseStart: () => {},
          onResponseData: () => {},
          onResponseEnd: () => resolve(),
          onResponseError: (_, error) => reject(error)
        }
      )
    })
  let next = 0
  const one = async () => {
    while (next < subscriptions.length) await send(subscriptions[next++]!)
  }
  await Promise.all(Array.from({ length: inFlight }, one))
  await pool.close()
}

process.once("message", async (order: Order) => {
  for (const { endpoint, keys } of order.subscriptions)
    recipients.set(endpoint, recipientOf(keys.p256dh, keys.auth))
  await run({ ...order, subscriptions: order.subscriptions.slice(0, warmUp) })
  const [cpu, start] = [process.cpuUsage(), performance.now()]
  await run(order)
  const { system, user } = process.cpuUsage(cpu)
  process.send!(
    { seconds: (performance.now() - start) / 1000, cpuSeconds: (user + system) / 1e6 },
    () => process.exit(0)
  )
})
