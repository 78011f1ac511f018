// Broadcasts in the ways that a publisher has: POST, onto NATS, and to users by a request on NATS;
// each with and without a key or an id by which a repetition is known. Those with one are repeated
// until acknowledged; the others are tried once, and stay unknown when no acknowledgement came.
import { setTimeout as sleep } from "node:timers/promises"
import { headers as natsHeaders } from "@nats-io/transport-node"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { publisher } from "../fleet/users.ts"
import type { Broadcast, Model, Right } from "../model/model.ts"
import type { RigClient } from "../nats/client.ts"
import type { Random } from "../random.ts"
import type { Gateways } from "./gateways.ts"
import type { Request } from "./http.ts"
import { drawOptions, headersOf, payloadOfBroadcast } from "./options.ts"
import { makeRecipients, toOf } from "./recipients.ts"
import type { Stop } from "./states.ts"

/** A publisher whose right ends. */
export interface Guest {
  readonly right: Right
  readonly ways: ReadonlyArray<Broadcast["via"]>
  /** The name of a user, or a header with a token. */
  readonly as: Pick<Request, "user" | "headers">
}

/** Publishes as `guest`, or as a publisher whose right stays. */
export type Publish = (channel: string, stop: AbortSignal, guest?: Guest) => Promise<void>

const ways = [
  "post",
  "post with key",
  "nats",
  "nats with id",
  "to users",
  "to users with key"
] as const
const pauseMillis = 300

type Headers = Record<string, string>

const refused = "refused"

/** The state of the rig that publishers go by. */
export interface Now {
  /** The cycle under way. */
  readonly cycle: number
  /** Whether all processes know `pause_when`. */
  readonly mayPause: boolean
}

export const makePublish = (
  model: Model,
  gateways: Gateways,
  nats: RigClient,
  random: Random,
  now: () => Now,
  stopSome: Stop
): Publish => {
  let count = 0
  const recipients = makeRecipients(model, random)

  /** Returns the id, or that the publisher may not; undefined: unknown. */
  const request = async (broadcast: Broadcast, asked: Request, guest: Guest | undefined) => {
    const { right } = broadcast
    const headers = { ...asked.headers, ...guest?.as.headers }
    const refusals = right === undefined ? [] : [401, 403]
    const whole = { ...asked, ...guest?.as, headers }
    const { location, status } = await gateways.once(whole, [200, 202, ...refusals])
    if (refusals.includes(status)) return refused
    if (location === undefined) return undefined
    if (right !== undefined) right.isHeld = true
    return Number(location.split("/").at(-1))
  }

  const post = (broadcast: Broadcast, body: object, headers: Headers, guest?: Guest) => {
    const path = `/channels/${encodeURIComponent(broadcast.channels[0]!)}`
    return request(broadcast, { method: "POST", path, user: publisher, body, headers }, guest)
  }

  const toUsers = (broadcast: Broadcast, body: object, headers: Headers, guest?: Guest) => {
    const [method, path] = guest === undefined ? ["NATS", "publish"] : ["POST", "/broadcasts"]
    const whole = { ...body, to: toOf(broadcast) }
    return request(broadcast, { method, path, body: whole, headers }, guest)
  }

  const onNats = async (broadcast: Broadcast, body: object, named: Headers) => {
    const headers = natsHeaders()
    for (const [name, value] of Object.entries(named)) headers.set(name, value)
    const subject = subjects.broadcast("torture", channelToken(broadcast.channels[0]!))
    try {
      const ack = await nats.js.publish(subject, JSON.stringify(body), { headers, timeout: 5_000 })
      return ack.seq
    } catch {
      return undefined
    }
  }

  const refuse = (broadcast: Broadcast, tries: number) => {
    const { isHeld, revoked } = broadcast.right!
    broadcast.isRefused = tries === 0
    if (isHeld && revoked === undefined)
      model.wrong.push(`${broadcast.via}: refused while the publisher has the right`)
  }

  return async (channel, stop, guest) => {
    const via = random.pick(guest?.ways ?? ways)
    const marker = `${random.fork(String(count)).between(1e8, 9e8)}-${count++}`
    const isEmpty = random.chance(0.1)
    const headers: Headers = { TTL: "7200" }
    if (isEmpty || random.chance(0.3)) headers["Topic"] = marker
    if (via.endsWith("with key")) headers["Idempotency-Key"] = marker
    if (via === "nats with id") headers["Nats-Msg-Id"] = marker
    const { cycle, mayPause } = now()
    const options = drawOptions(random, mayPause)
    const mayFail = options.pause_when !== undefined && random.chance(0.5)
    const failingShare = mayFail ? random.between(10, 40) / 100 : 0
    const body = { data: isEmpty ? {} : payloadOfBroadcast(random, marker, 0, failingShare) }
    if (!via.startsWith("nats")) Object.assign(body, options)
    else Object.assign(headers, headersOf(options))
    const startedAt = performance.now()
    const broadcast: Broadcast = {
      marker,
      ...recipients(via, channel, guest !== undefined),
      via,
      cycle,
      startedAt,
      isScheduled: options.at !== undefined,
      terms: [{ rate: options.rate, edition: 0 }],
      failedShare: options.pause_when?.failed_share,
      ...(guest === undefined ? {} : { right: guest.right })
    }
    model.broadcasts.set(marker, broadcast)
    const send = via.startsWith("post") ? post : via.startsWith("nats") ? onNats : toUsers
    const isRepeatable = headers["Idempotency-Key"] !== undefined || via === "nats with id"
    for (let tries = 0; ; tries++) {
      const id = await send(broadcast, body, headers, guest)
      if (id === refused) return refuse(broadcast, tries)
      if (id !== undefined) {
        broadcast.id = id
        broadcast.ackedAt = performance.now()
        return stopSome(broadcast)
      }
      if (!isRepeatable || stop.aborted) return
      await sleep(pauseMillis)
    }
  }
}
