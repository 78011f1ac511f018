// The buckets hold every healthy subscription and every registration, and nothing that was removed.
import { isEndpointOwners, metaKey } from "#streams/buckets.ts"
import { channelToken } from "#streams/tokens.ts"
import { eachSubscription } from "../model/audience.ts"
import { isIn, keyOf } from "../model/model.ts"
import { readBucket } from "../nats/read.ts"
import { type Check, few, type Look, patient } from "./check.ts"

/** Subscriptions that the bucket `subscriptions` holds and does not suspend, by their keys. */
const liveKeys = async ({ client }: Look) => {
  const keys = new Set<string>()
  /** Subscriptions that another user has taken, until their removal is stored. */
  const moving: Array<string> = []
  for (const [key, value] of await readBucket(client, "bellcast_subscriptions")) {
    if (key === metaKey || isEndpointOwners(key)) continue
    const subscriptions: Record<string, { suspended?: object; moved?: number }> =
      JSON.parse(value).subscriptions
    for (const [id, { moved, suspended }] of Object.entries(subscriptions)) {
      if (moved !== undefined) moving.push(`${key}.${id}`)
      else if (suspended === undefined) keys.add(`${key}.${id}`)
    }
  }
  return { keys, moving }
}

export const kept: Check = patient({
  name: "nobody healthy removed",
  run: async (look) => {
    const { keys: live, moving } = await liveKeys(look)
    const violations = moving.map((key) => `the move of ${key} has no end`)
    eachSubscription(look.model, (of) => {
      const { device, id, removed, stored, user } = of
      if (stored.ackedAt === undefined) return
      const key = keyOf(of)
      const name = `${user.name} ${id.slice(0, 8)}`
      const why = look.recorded.removals.get(key) ?? "no fact says why"
      if (removed === undefined && device.goneAt === undefined && !live.has(key))
        violations.push(`${name} is healthy and was removed (${why})`)
      if (removed?.ackedAt !== undefined && live.has(key))
        violations.push(`${name} was removed by its user, or moved, and is still there`)
    })
    for (const key of look.model.squatted)
      if (live.has(key)) violations.push(`a squatter has ${key}`)
    return few(violations)
  }
})

export const registrations: Check = patient({
  name: "registrations are the truth",
  run: async (look) => {
    const on = new Map<string, number>()
    for (const [key, value] of await readBucket(look.client, "bellcast_registrations")) {
      const [channel = ""] = key.split(".")
      if (JSON.parse(value).on === true) on.set(channel, (on.get(channel) ?? 0) + 1)
    }
    return look.model.channels.flatMap((channel) => {
      const truth = look.model.users.filter((user) => isIn(user, channel)).length
      const count = on.get(channelToken(channel)) ?? 0
      return count === truth ? [] : [`${channel}: ${count} in the bucket, not ${truth}`]
    })
  }
})
