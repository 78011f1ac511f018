// Whether nats-server still stores what it is given. A server whose disk was full goes on to answer
// reads, and needs a restart: nothing else would say why each write fails.
import { connect } from "node:net"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { monotonicMillis } from "#clock/monotonic.ts"
import { streams } from "#streams/index.ts"
import { showNatsTrouble } from "#telemetry/nats-metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { Nats } from "../connection/connection.ts"
import { isNotReady } from "../connection/ready.ts"
import { codeOf, type Failure } from "../connection/responses.ts"
import { type StreamInfo, streamInfo } from "../stream/info.ts"
import { type Look, StreamWatch } from "./streams.ts"

/** Longer than the election of a leader takes (5 to 7 s), and than slow disks wait. */
const silentMillis = 10_000
const timeoutMillis = 2_000

const advice =
  "Its disk was full or failed: see its log and its /healthz. Free disk space, then restart " +
  "nats-server (each server of a cluster, one after the other)"

const messages = {
  frozen: `nats-server stores nothing. ${advice}`,
  disabled: `JetStream of nats-server does not answer: it is disabled. ${advice}`,
  leaderless:
    "NATS stores nothing, as no majority of a cluster's servers runs: start those that are away " +
    "(`nats server report jetstream` shows them)"
}

/**
 * Frozen: streams answer reads and store nothing. Disabled: JetStream does not answer at all.
 * Leaderless: a cluster has lost its majority.
 */
export interface Trouble {
  readonly kind: keyof typeof messages
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
        frozen: makeRateLimitedLog(messages.frozen, Effect.logError),
        disabled: makeRateLimitedLog(messages.disabled, Effect.logError),
        leaderless: makeRateLimitedLog(messages.leaderless, Effect.logError)
      }
      const diagnosis = new Diagnosis()
      let replicas = 1
      const look = Effect.fnUntraced(function* (seen: Look | undefined) {
        const before = trouble
        replicas = seen?.streams.get(streams.log.name)?.config.num_replicas ?? replicas
        trouble = yield* troubleOf(nats, diagnosis, replicas)
        showNatsTrouble(Object.keys(messages), trouble?.kind)
        if (trouble !== undefined) yield* logs[trouble.kind]({ streams: trouble.streams.join(",") })
        else diagnosis.forget()
        if (trouble === undefined && before !== undefined)
          yield* Effect.logInfo("nats-server stores again", { streams: before.streams.join(",") })
      })
      yield* (yield* StreamWatch).tell(look)
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

/** Whether a server takes connections. */
const isRunning = (url: string): Effect.Effect<boolean> =>
  Effect.callback<boolean>((resume) => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port || 4222), hostname.replaceAll(/[[\]]/g, ""))
    const end = (isThere: boolean) => {
      socket.destroy()
      resume(Effect.succeed(isThere))
    }
    socket.once("connect", () => end(true)).once("error", () => end(false))
    return Effect.sync(() => socket.destroy())
  }).pipe(
    Effect.timeout(timeoutMillis),
    Effect.orElseSucceed(() => false)
  )

/**
 * How many of the cluster's servers run. Undefined: BELLCAST_NATS_URL does not name each of them,
 * and nats-server tells a client with a login of the others only when that changes.
 */
const sizeOf = Effect.fnUntraced(function* ({ servers }: Nats["Service"], replicas: number) {
  if (servers.length < Math.max(2, replicas)) return undefined
  const each = yield* Effect.forEach(servers, isRunning, { concurrency: "unbounded" })
  return { running: each.filter(Boolean).length, all: servers.length }
})

/** Servers that have just come back elect leaders: 5 to 7 s, more on a busy machine. */
const electionMillis = 20_000

/** Corrects what an error code says by the servers that run, as of earlier looks, too. */
export class Diagnosis {
  /** Since when a majority runs, while NATS stores nothing. */
  #majoritySince: number | undefined
  /** Whether there was none before, since NATS stored last. */
  #lostMajority = false

  /**
   * While no majority runs, nothing else matters. While one runs for long, a stream without a
   * leader has full disks. `size`: undefined where nobody knows. `now`: by the monotonic clock.
   */
  correct(
    kind: Trouble["kind"],
    size: { readonly running: number; readonly all: number } | undefined,
    now: number
  ): Trouble["kind"] {
    if (size === undefined || size.all === 1) return kind
    if (size.running * 2 <= size.all) {
      this.#majoritySince = undefined
      this.#lostMajority = true
      return "leaderless"
    }
    this.#majoritySince ??= now
    const isElecting = now - this.#majoritySince < electionMillis
    if (isElecting) return this.#lostMajority ? "leaderless" : kind
    return kind === "leaderless" ? "frozen" : kind
  }

  /** NATS stores again. */
  forget(): void {
    this.#majoritySince = undefined
    this.#lostMajority = false
  }
}

/** A stream of a cluster has a leader while a majority of its servers runs. */
const hasMajority = ({ cluster }: StreamInfo): boolean =>
  cluster === undefined || Boolean(cluster.leader)

/** The kind of trouble, by the state of a stream that stores nothing or the lack of a response. */
const kindOf = (
  { nc }: Nats["Service"],
  info: Result.Result<StreamInfo | undefined, Failure>
): Trouble["kind"] => {
  if (Result.isSuccess(info))
    return info.success === undefined || hasMajority(info.success) ? "frozen" : "leaderless"
  if (codeOf(info.failure) === undefined)
    return nc.info?.cluster === undefined ? "disabled" : "leaderless"
  return isNotReady(info.failure) ? "leaderless" : "frozen"
}

const troubleOf = Effect.fnUntraced(function* (
  nats: Nats["Service"],
  diagnosis: Diagnosis,
  replicas: number
) {
  const silent = nats.silences.longerThan(silentMillis)
  if (silent.length === 0 || !(yield* isReached(nats))) return undefined
  const info = yield* Effect.result(streamInfo(nats, silent[0]!, timeoutMillis))
  // The server may have been restarted meanwhile.
  if (nats.silences.longerThan(silentMillis).length === 0) return undefined
  const size = yield* sizeOf(nats, replicas)
  const kind = diagnosis.correct(kindOf(nats, info), size, yield* monotonicMillis)
  const trouble: Trouble = { kind, streams: silent }
  return trouble
})
