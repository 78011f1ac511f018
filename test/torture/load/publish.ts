// Broadcasts in the four ways that a publisher has: POST, POST with an Idempotency-Key, onto NATS,
// and onto NATS with a Nats-Msg-Id. Those with a key or an id are repeated until acknowledged; the
// others are tried once, and stay unknown when no acknowledgement came.
import { setTimeout as sleep } from "node:timers/promises"
import { headers as natsHeaders } from "@nats-io/transport-node"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import type { Broadcast, Model } from "../model/model.ts"
import type { RigClient } from "../nats/client.ts"
import type { Random } from "../random.ts"
import type { Gateways } from "./gateways.ts"

export type Publish = (channel: string, stop: AbortSignal) => Promise<void>

const ways = ["post", "post with key", "nats", "nats with id"] as const
const pauseMillis = 300

export const makePublish = (
  model: Model,
  gateways: Gateways,
  nats: RigClient,
  random: Random,
  /** The cycle under way. */
  cycle: () => number
): Publish => {
  let count = 0

  const post = async (broadcast: Broadcast, body: object, headers: Record<string, string>) => {
    const path = `/channels/${encodeURIComponent(broadcast.channel)}`
    const asked = { method: "POST", path, user: "publisher", body, headers }
    const { location, status } = await gateways.once(asked, [202])
    return status === 202 ? Number(location?.split("/").at(-1)) : undefined
  }

  const onNats = async (broadcast: Broadcast, body: object, named: Record<string, string>) => {
    const headers = natsHeaders()
    for (const [name, value] of Object.entries(named)) headers.set(name, value)
    const subject = subjects.broadcast("torture", channelToken(broadcast.channel))
    try {
      const ack = await nats.js.publish(subject, JSON.stringify(body), { headers, timeout: 5_000 })
      return ack.seq
    } catch {
      return undefined
    }
  }

  return async (channel, stop) => {
    const via = random.pick(ways)
    const marker = `${random.fork(String(count)).between(1e8, 9e8)}-${count++}`
    const isEmpty = random.chance(0.1)
    const headers: Record<string, string> = { TTL: "7200" }
    if (isEmpty || random.chance(0.3)) headers["Topic"] = marker
    if (via === "post with key") headers["Idempotency-Key"] = marker
    if (via === "nats with id") headers["Nats-Msg-Id"] = marker
    const text = "x".repeat(random.between(0, 1_500))
    const body = { data: isEmpty ? {} : { marker, text } }
    const startedAt = performance.now()
    const broadcast: Broadcast = { marker, channel, via, cycle: cycle(), startedAt }
    model.broadcasts.set(marker, broadcast)
    const send = via.startsWith("post") ? post : onNats
    const isRepeatable = headers["Idempotency-Key"] !== undefined || via === "nats with id"
    while (true) {
      const id = await send(broadcast, body, headers)
      if (id !== undefined) {
        broadcast.id = id
        broadcast.ackedAt = performance.now()
        return
      }
      if (!isRepeatable || stop.aborted) return
      await sleep(pauseMillis)
    }
  }
}
