// Reads the time of the NATS server, for the clock of the service and for waits that the server is
// told as a time.
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Reading, ServiceClock } from "#clock/clocks.ts"
import { monotonicMillis } from "#clock/clocks.ts"
import { streams } from "#streams/index.ts"
import { showClockAhead } from "#telemetry/nats-metrics.ts"
import { Nats } from "../connection/connection.ts"
import { unavailable } from "../connection/errors.ts"
import { streamInfo } from "../stream/info.ts"
import { type Look, StreamWatch } from "./streams.ts"

const timeoutMillis = 2_000
/** A clock that is this wrong is worth a line in the log. */
const wrongMillisMin = 10_000

const shown = (millis: number) => ({ seconds: Math.round(millis / 1000) })

const failed = unavailable("time of the server")

/**
 * The time of the server that leads LOG, which gives broadcasts their time; undefined: there is no
 * LOG yet.
 */
export const serverTime = Effect.gen(function* () {
  const nats = yield* Nats
  const began = yield* monotonicMillis
  const info = yield* streamInfo(nats, streams.log.name, timeoutMillis).pipe(
    Effect.mapError(failed)
  )
  if (info === undefined) return undefined
  const reading: Reading = {
    serverMillis: Date.parse(info.ts),
    began,
    ended: yield* monotonicMillis
  }
  return reading
})

/** Like `serverTime`, but fails where there is no LOG. */
export const readServerTime = Effect.flatMap(serverTime, (reading) =>
  reading === undefined
    ? failed(new Error(`no stream ${streams.log.name}`))
    : Effect.succeed(reading)
)

/** The server's time in a look at all streams; undefined: LOG was not there. */
const readingOf = ({ began, ended, streams: found }: Look): Reading | undefined => {
  const info = found.get(streams.log.name)
  return info && { serverMillis: Date.parse(info.ts), began, ended }
}

/**
 * Keeps the clock of the service at the server's time, from the first look on, which comes before
 * the layer is made. Without a response the clock runs on.
 */
export const followServerTime = (clock: ServiceClock) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const watch = yield* StreamWatch
      let saidMillis = 0
      let isFirst = true
      const follow = Effect.fnUntraced(function* (look: Look | undefined) {
        const reading = look && readingOf(look)
        if (reading === undefined) return
        const changed = clock.follow(reading)
        if (!isFirst && Math.abs(changed) >= wrongMillisMin)
          yield* Effect.logWarning("the clock of NATS was set: the service follows", shown(changed))
        isFirst = false
        const ahead = clock.aheadMillis()
        showClockAhead(ahead)
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
      yield* watch.tell(follow)
    })
  )
