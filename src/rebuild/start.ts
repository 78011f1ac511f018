// Makes buckets of an earlier form again at a start: one process that runs projection or tally does
// so from the streams, under the leases of the followers, and all others wait. A process that dies
// half-way is followed by another one, or by its own next start, which writes only what is not
// written yet.
import * as Effect from "effect/Effect"
import { monotonicMillis } from "#clock/clocks.ts"
import type { Role } from "#config"
import { noteMaking, streamState } from "#nats/admin/maintenance.ts"
import { ensureCache } from "#nats/admin/provision.ts"
import { bucketsToMake, refuseOtherMoments } from "#nats/admin/start-checks.ts"
import { StartRefused } from "#nats/connection/errors.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { bucketStream, keys } from "#streams/buckets.ts"
import { followerNames } from "#streams/followers.ts"
import { storedForm, streams } from "#streams/index.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { type HowFar, inWords, Notes } from "./notes.ts"
import { holdLease, rebuildUnder } from "./rebuild.ts"

/**
 * Returns when the buckets have the form of this version. `meanwhile` is run first where they have
 * not: it may open a port, until the scope of this effect ends. Fails with StartRefused where a
 * start cannot make them.
 */
export const ensureForm = Effect.fn("Rebuild.ensureForm")(function* <E, R>(
  roles: ReadonlyArray<Role>,
  meanwhile: Effect.Effect<unknown, E, R>
) {
  const log = yield* streamState(streams.log)
  const found = yield* bucketsToMake
  if (found.length === 0) {
    // The process that made them was killed before it noted that.
    if (log?.making !== undefined) yield* noteMaking(undefined)
    return
  }
  const names = found.map(bucketStream).join(",")
  yield* Effect.logWarning(
    `the buckets are made again from the streams, in form ${storedForm.buckets}: no process of ` +
      "this version is ready before, and those of an earlier version end",
    { buckets: names }
  )
  yield* meanwhile
  const isMaker = roles.includes("projection") || roles.includes("tally")
  yield* isMaker ? makeOrWait(log!.replicas) : untilMade
  yield* Effect.logInfo("the buckets are made")
}, Effect.scoped)

/** Tries in a row that end early, as a lease was lost or NATS was away, before the start fails. */
const triesMax = 10
const againAfter = "5 seconds"

const makeOrWait = Effect.fnUntraced(function* (replicas: number) {
  for (let tries = 1; ; tries++) {
    const result = yield* Effect.result(Effect.scoped(makeOnce(replicas)))
    if (result._tag === "Success") return
    const { failure } = result
    const passes =
      failure._tag === "RebuildFailed" ? failure.passes : failure._tag === "NatsUnavailable"
    if (tries === triesMax || !passes)
      return yield* failure._tag === "RebuildFailed"
        ? new StartRefused({ message: `the buckets cannot be made: ${failure.message}` })
        : Effect.fail(failure)
    yield* Effect.logWarning("the buckets are not made yet: this process tries again", failure)
    yield* Effect.sleep(againAfter)
  }
})

/**
 * Processes of an earlier version end within this time, which would take entries of this form for
 * their own: at rest they look every 3 s, and wait 2 s for the response.
 */
const endedMillis = 6_000

/** Makes the buckets, unless another process does so first. */
const makeOnce = Effect.fnUntraced(
  function* (replicas: number) {
    if ((yield* bucketsToMake).length === 0) return
    const isBegun = (yield* streamState(streams.log))?.making !== undefined
    if (!isBegun) yield* refuseOtherMoments
    // Processes of an earlier version end now, and give up the leases.
    yield* noteMaking(storedForm.buckets)
    const notedAt = yield* monotonicMillis
    const areEnded = Effect.flatMap(monotonicMillis, (now) =>
      Effect.sleep(isBegun ? 0 : notedAt + endedMillis - now)
    )
    yield* ensureCache(replicas)
    const leases = yield* Effect.raceFirst(
      Effect.forEach(followerNames, (name) => holdLease(name, "wait")),
      Effect.as(untilMade, undefined)
    )
    // Another process may have made them before this one noted that it would.
    const isMade = leases === undefined || (yield* bucketsToMake).length === 0
    yield* isMade ? noteMaking(undefined) : rebuildUnder(leases, replicas, areEnded)
  },
  Effect.provideServiceEffect(
    Notes,
    Effect.suspend(() => makeNotes)
  )
)

/** How often other processes learn how far this one is, and how often a log line says so. */
const shownMillis = 2_000
const loggedMillis = 30_000
/** A process that has said nothing for so long does nothing. */
const shownSeconds = 30

/** Says how far this process is: seldom in the log, and in the bucket `cache` for the others. */
const makeNotes = Effect.gen(function* () {
  const buckets = yield* Buckets
  let [shownAt, loggedAt] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY]
  const show = Effect.fnUntraced(function* (howFar: HowFar) {
    const former = yield* buckets.get("cache", keys.rebuilding)
    const entry = { v: 1, ...howFar } as const
    const options = { ttlSeconds: shownSeconds }
    yield* buckets.put("cache", keys.rebuilding, entry, former?.revision ?? 0, options)
  })
  return {
    note: (text: string) => Effect.logInfo(text),
    reach: Effect.fnUntraced(function* (howFar: HowFar) {
      const now = yield* monotonicMillis
      if (now - shownAt >= shownMillis) {
        shownAt = now
        yield* Effect.ignore(show(howFar))
      }
      if (now - loggedAt < loggedMillis) return
      loggedAt = now
      yield* Effect.logInfo(`the buckets are made again: ${inWords(howFar)}`)
    })
  }
})

const waitMillis = 1_000

/** Waits until another process has made the buckets, and logs seldom how far it is. */
const untilMade = Effect.gen(function* () {
  const { get } = yield* Buckets
  const warn = makeRateLimitedLog("whether the buckets are made cannot be read")
  let loggedAt = Number.NEGATIVE_INFINITY
  while (true) {
    yield* Effect.sleep(waitMillis)
    const left = yield* bucketsToMake.pipe(
      Effect.catchTag("NatsUnavailable", (error) =>
        Effect.as(warn({ err: error.message }), undefined)
      )
    )
    if (left?.length === 0) return
    const now = yield* monotonicMillis
    if (now - loggedAt < loggedMillis) continue
    loggedAt = now
    const howFar = yield* Effect.orElseSucceed(get("cache", keys.rebuilding), () => undefined)
    yield* howFar === undefined
      ? Effect.logWarning(
          "this process waits for the buckets, and no process has begun to make them: it must " +
            "run the role projection or tally (BELLCAST_ROLES)"
        )
      : Effect.logInfo(`this process waits for the buckets: ${inWords(howFar.value)}`)
  }
})
