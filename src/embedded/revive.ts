// Restarts an embedded nats-server that stores nothing any more, once its disk has space again:
// after an error of the disk, nats-server itself does not try again.
import { statfs } from "node:fs/promises"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { monotonicMillis } from "#clock/monotonic.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import type { EmbeddedServer } from "./server.ts"

/** With less, the disk would be full again at once. */
export const freeBytesMin = 64 * 1024 ** 2
/** A restart that does not help is not repeated for ever: the operator has to look. */
export const restartsMax = 5
const restartsMillis = 60 * 60_000
/** A restarted server has so long to recover its streams and to store again. */
export const settleMillis = 30_000
const everyMillis = 1_000

/** The remedy for a server that stores nothing. `restartedAt`: earlier restarts, in order. */
export const remedyOf = (
  restartedAt: ReadonlyArray<number>,
  now: number,
  freeBytes: number
): "wait" | "giveUp" | "needsSpace" | "restart" => {
  if (now - (restartedAt.at(-1) ?? Number.NEGATIVE_INFINITY) < settleMillis) return "wait"
  if (restartedAt.filter((at) => now - at < restartsMillis).length >= restartsMax) return "giveUp"
  return freeBytes < freeBytesMin ? "needsSpace" : "restart"
}

const needsSpace = makeRateLimitedLog(
  "the embedded nats-server stores nothing: it is restarted when its disk has space again",
  Effect.logError
)
const givenUp = makeRateLimitedLog(
  "the embedded nats-server stores nothing, and restarts did not help: see its log",
  Effect.logError
)

/** Undefined: the disk cannot be asked, as it fails or is not mounted. */
const freeBytesOf = (folder: string) =>
  Effect.tryPromise(async () => {
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize
  }).pipe(Effect.orElseSucceed(() => undefined))

const restartOn = (server: EmbeddedServer, freeBytes: number) =>
  Effect.logWarning("the embedded nats-server stores nothing: restarting it", { freeBytes }).pipe(
    Effect.andThen(Effect.promise(() => server.restart())),
    Effect.andThen(Effect.logInfo("the embedded nats-server was restarted")),
    // A half-done restart would leave the process without a server.
    Effect.uninterruptible
  )

/** Watches the server until the scope closes. `isSilent`: whether it stores nothing. */
export const revive = Effect.fnUntraced(function* (
  server: EmbeddedServer,
  isSilent: () => boolean
) {
  const { folder, logFile } = server
  const restartedAt: Array<number> = []
  const look = Effect.gen(function* () {
    if (!isSilent()) return
    const now = yield* monotonicMillis
    const found = yield* freeBytesOf(folder)
    const freeBytes = found ?? 0
    const remedy = remedyOf(restartedAt, now, freeBytes)
    if (remedy === "needsSpace") {
      yield* needsSpace({ freeBytes: found ?? "unknown", freeBytesMin, folder })
    }
    if (remedy === "giveUp") yield* givenUp({ restarts: restartedAt.length, logFile })
    if (remedy !== "restart") return
    restartedAt.push(now)
    yield* restartOn(server, freeBytes)
  })
  yield* look.pipe(Effect.repeat(Schedule.spaced(everyMillis)), Effect.forkScoped)
})
