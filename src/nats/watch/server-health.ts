// Whether nats-server still stores what it is given. A server whose disk was full goes on to answer
// reads, and needs a restart: nothing else would say why each write fails.
import { Context, Effect, Layer, Schedule } from "effect"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { Nats } from "../connection/connection.ts"
import { codeOf } from "../connection/responses.ts"

/** Longer than the election of a leader takes (5 to 7 s), and than slow disks wait. */
const silentMillis = 10_000
const everyMillis = 1_000
const timeoutMillis = 2_000

const advice =
  "Its disk was full or failed: see its log and its /healthz. Free disk space, then restart " +
  "nats-server (each server of a cluster, one after the other)"

/** Frozen: streams answer reads and store nothing. Disabled: JetStream does not answer at all. */
export interface Trouble {
  readonly kind: "frozen" | "disabled"
  readonly streams: ReadonlyArray<string>
}

export class ServerHealth extends Context.Service<
  ServerHealth,
  {
    /** Undefined: nats-server stores what this process writes, or cannot be reached. */
    readonly trouble: () => Trouble | undefined
  }
>()("bellcast/nats/ServerHealth") {
  static readonly layer = Layer.effect(
    ServerHealth,
    Effect.gen(function* () {
      const nats = yield* Nats
      let trouble: Trouble | undefined
      const logs = {
        frozen: makeRateLimitedLog(`nats-server stores nothing. ${advice}`, Effect.logError),
        disabled: makeRateLimitedLog(
          `JetStream of nats-server does not answer: it is disabled or has no leader. ${advice}`,
          Effect.logError
        )
      }
      const look = Effect.gen(function* () {
        const before = trouble
        trouble = yield* troubleOf(nats)
        if (trouble !== undefined) yield* logs[trouble.kind]({ streams: trouble.streams.join(",") })
        else if (before !== undefined)
          yield* Effect.logInfo("nats-server stores again", { streams: before.streams.join(",") })
      })
      yield* look.pipe(Effect.repeat(Schedule.spaced(everyMillis)), Effect.forkScoped)
      return ServerHealth.of({ trouble: () => trouble })
    })
  )
}

/** The server answers pings while this process reaches it. */
const isReached = ({ nc }: Nats["Service"]) =>
  Effect.tryPromise(() => nc.rtt()).pipe(
    Effect.timeout(timeoutMillis),
    Effect.as(true),
    Effect.orElseSucceed(() => false)
  )

const troubleOf = Effect.fnUntraced(function* (nats: Nats["Service"]) {
  const streams = nats.silences.longerThan(silentMillis)
  if (streams.length === 0 || !(yield* isReached(nats))) return undefined
  const isAnswered = yield* nats
    .request(`$JS.API.STREAM.INFO.${streams[0]}`, "", timeoutMillis)
    .pipe(
      Effect.match({ onSuccess: () => true, onFailure: (error) => codeOf(error) !== undefined })
    )
  // The server may have been restarted meanwhile.
  if (nats.silences.longerThan(silentMillis).length === 0) return undefined
  const trouble: Trouble = { kind: isAnswered ? "frozen" : "disabled", streams }
  return trouble
})
