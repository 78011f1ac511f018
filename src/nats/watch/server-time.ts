// Reads the time of the NATS server, for the clock of the service and for waits that the server is
// told as a time.
import { Effect, Layer, Schedule } from "effect"
import { monotonicMillis } from "#clock/monotonic.ts"
import type { Reading, ServiceClock } from "#clock/service-clock.ts"
import { streams } from "#streams/index.ts"
import { Nats } from "../connection/connection.ts"
import { unavailable } from "../connection/errors.ts"

const everyMillis = 5_000
const timeoutMillis = 2_000
/** A clock that is this wrong is worth a line in the log. */
const wrongMillisMin = 10_000

const shown = (millis: number) => ({ seconds: Math.round(millis / 1000) })

/** Reads the time of the server that leads LOG: that server gives broadcasts their time. */
export const readServerTime = Effect.gen(function* () {
  const { request } = yield* Nats
  const subject = `$JS.API.STREAM.INFO.${streams.log.name}`
  const began = yield* monotonicMillis
  const { ts } = yield* request<{ readonly ts: string }>(subject, "", timeoutMillis)
  const reading: Reading = {
    serverMillis: Date.parse(ts),
    began,
    ended: yield* monotonicMillis
  }
  return reading
}).pipe(Effect.mapError(unavailable("time of the server")))

/**
 * Keeps the clock of the service at the server's time, from the first reading on, which comes
 * before the layer is made. Without a response the clock runs on.
 */
export const followServerTime = (clock: ServiceClock) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      let saidMillis = 0
      let isFirst = true
      const follow = Effect.gen(function* () {
        const changed = clock.follow(yield* readServerTime)
        if (!isFirst && Math.abs(changed) >= wrongMillisMin)
          yield* Effect.logWarning("the clock of NATS was set: the service follows", shown(changed))
        isFirst = false
        const ahead = clock.aheadMillis()
        if (Math.abs(ahead - saidMillis) < wrongMillisMin) return
        saidMillis = ahead
        yield* Math.abs(ahead) < wrongMillisMin
          ? Effect.logInfo("the clock of this machine is that of NATS again")
          : Effect.logWarning(
              "the clock of this machine is not that of NATS: the time of NATS is used; " +
                "compare both with an NTP server",
              { aheadSeconds: shown(ahead).seconds }
            )
      })
      // Others log that the server is unavailable.
      yield* Effect.ignore(follow)
      yield* Effect.ignore(follow).pipe(
        Effect.delay(everyMillis),
        Effect.repeat(Schedule.forever),
        Effect.forkScoped
      )
    })
  )
