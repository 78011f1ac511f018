// GET /__heartbeat__ and /__lbheartbeat__: whether what this server depends on works, and whether it is there at all.
import { Effect, Random, Schema } from "effect"
import { Buckets } from "#log/bucket.ts"
import { Log } from "#log/log.ts"
import { keys, metaKey } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import { ok } from "../ask.ts"
import type { Operation } from "../operation.ts"
import { GatewaySettings } from "../settings.ts"

const probeSeconds = 60

/** LOG and a bucket can be read from their leaders, and a projector is at work: without one no write is ever answered. */
const storage = Effect.gen(function* () {
  const buckets = yield* Buckets
  const log = yield* Log
  const [lease] = yield* Effect.all(
    [
      buckets.get("cache", keys.lease("projector")),
      buckets.get("subscriptions", metaKey),
      log.last("log", subjects.rejected(0))
    ],
    { concurrency: 3 }
  )
  return ((lease?.value as { holder?: string } | undefined)?.holder ?? "") !== ""
})

const cache = Effect.gen(function* () {
  const buckets = yield* Buckets
  const { readonly } = yield* GatewaySettings
  if (readonly) return (yield* buckets.get("cache", metaKey)) !== undefined
  const probe = yield* Random.nextInt
  const key = `probe.${Math.abs(probe).toString(36)}`
  yield* buckets.put("cache", key, { probe }, 0, { ttlSeconds: probeSeconds })
  return (
    ((yield* buckets.get("cache", key))?.value as { probe?: number } | undefined)?.probe === probe
  )
})

const permission = Effect.gen(function* () {
  return (yield* (yield* Buckets).get("permissions", metaKey)) !== undefined
})

/** A check that fails, throws or does not end in time is false. */
const within = <E, R>(seconds: number, name: string, check: Effect.Effect<boolean, E, R>) =>
  check.pipe(
    Effect.timeout(`${seconds} seconds`),
    Effect.catchCause((cause) =>
      Effect.as(Effect.logWarning(`heartbeat: ${name} fails`, cause), false)
    )
  )

const Health = Schema.Struct({
  storage: Schema.Boolean,
  cache: Schema.Boolean,
  permission: Schema.Boolean
})

export const heartbeatGet: Operation<void> = {
  access: "anyone",
  read: () => Effect.void,
  run: Effect.fnUntraced(function* () {
    const { heartbeatTimeoutSeconds } = yield* GatewaySettings
    const health = yield* Effect.all(
      {
        storage: within(heartbeatTimeoutSeconds, "storage", storage),
        cache: within(heartbeatTimeoutSeconds, "cache", cache),
        permission: within(heartbeatTimeoutSeconds, "permission", permission)
      },
      { concurrency: "unbounded" }
    )
    return ok(health, {}, Object.values(health).every(Boolean) ? 200 : 503)
  }),
  doc: {
    summary: "Whether everything this server depends on works",
    answers: { 200: Health, 503: Health }
  }
}

export const lbheartbeatGet: Operation<void> = {
  access: "anyone",
  read: () => Effect.void,
  run: () => Effect.succeed(ok({})),
  doc: {
    summary: "Whether this server is there; touches nothing else",
    answers: { 200: Schema.Record(Schema.String, Schema.Unknown) }
  }
}
