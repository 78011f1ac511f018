// Whether nats-server still stores what it is given. A server whose disk was full goes on to answer
// reads, and needs a restart: nothing else would say why each write fails.
import { connect } from "node:net"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { monotonicMillis } from "#clock/clocks.ts"
import { showNatsTrouble } from "#telemetry/nats-metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { isNotReady } from "../connection/again.ts"
import { Nats } from "../connection/connection.ts"
import { codeOf, type Failure } from "../connection/errors.ts"
import { type StreamInfo, streamInfo } from "../stream/info.ts"
import { type Look, StreamWatch } from "./streams.ts"

/** Longer than the election of a leader takes (5 to 7 s), and than slow disks wait. */
const silentMillis = 10_000
const timeoutMillis = 2_000
/** A greeting of nats-server is a line of about 400 bytes, and 30 more for each further server. */
const greetingMax = 65_536

const advice =
  "Its disk was full or failed: see its log and its /healthz. Free disk space, then restart " +
  "nats-server (each server of a cluster, one after the other)"

const messages = {
  frozen: `nats-server stores nothing. ${advice}`,
  disabled: `JetStream of nats-server does not answer: it is disabled. ${advice}`,
  leaderless:
    "NATS stores nothing, as of the servers that hold a stream no majority runs: start those " +
    "that are away (`nats server report jetstream` shows them)",
  unknown:
    "NATS stores nothing, as a stream has no leader. Start servers that are away (`nats server " +
    "report jetstream` shows them). If all run, a disk was full or failed: see the log of each " +
    "nats-server. Free disk space, then restart them, one after the other"
}

/**
 * Frozen: streams answer reads and store nothing. Disabled: JetStream does not answer at all.
 * Leaderless: of the servers that hold a stream, no majority runs. Unknown: a stream has no leader,
 * and BELLCAST_NATS_URL does not list the servers that hold it.
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
        leaderless: makeRateLimitedLog(messages.leaderless, Effect.logError),
        unknown: makeRateLimitedLog(messages.unknown, Effect.logError)
      }
      const diagnosis = new Diagnosis()
      /** The servers that hold each stream, by the last look that showed its leader. */
      const holders = new Map<string, ReadonlyArray<string>>()
      const look = Effect.fnUntraced(function* (seen: Look | undefined) {
        const before = trouble
        for (const [stream, { cluster }] of seen?.streams ?? [])
          if (cluster?.leader) {
            const others = (cluster.replicas ?? []).map(({ name }) => name)
            holders.set(stream, [cluster.leader, ...others])
          }
        trouble = yield* troubleOf(nats, diagnosis, holders)
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

/**
 * The name of a server that takes connections, from its greeting; "": no name, as TLS comes first.
 * Undefined: the server is away.
 */
const runningName = (url: string): Effect.Effect<string | undefined> =>
  Effect.callback<string | undefined>((resume) => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port || 4222), hostname.replaceAll(/[[\]]/g, ""))
    let greeting = ""
    let isThere = false
    const end = () => {
      socket.destroy()
      const name = /"server_name":"([^"]*)"/.exec(greeting)?.[1] ?? ""
      resume(Effect.succeed(isThere ? name : undefined))
    }
    socket.setEncoding("latin1").setTimeout(timeoutMillis, end)
    socket.once("connect", () => {
      isThere = true
    })
    socket.on("data", (text) => {
      greeting += text
      if (greeting.includes("\n") || greeting.length > greetingMax) end()
    })
    socket.once("error", end).once("end", end)
    return Effect.sync(() => socket.destroy())
  }).pipe(
    Effect.timeout(2 * timeoutMillis),
    Effect.orElseSucceed(() => "")
  )

/** How many of the servers that hold a stream run. */
interface Holders {
  readonly running: number
  readonly all: number
}

/**
 * Counts the holders that run, by the names of the servers that BELLCAST_NATS_URL lists.
 * Undefined: a holder may run beside them, or is one of those that tell no name.
 */
export const holdersOf = (
  holders: ReadonlyArray<string>,
  listed: ReadonlyArray<string | undefined>
): Holders | undefined => {
  const away = holders.filter((name) => !listed.includes(name)).length
  const isKnown = away <= listed.filter((name) => name === undefined).length
  if (holders.length === 0 || !isKnown || listed.includes("")) return undefined
  return { running: holders.length - away, all: holders.length }
}

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
   * leader has full disks. `size`: of the servers that hold the stream; undefined where nobody
   * knows. `now`: by the monotonic clock.
   */
  correct(kind: Trouble["kind"], size: Holders | undefined, now: number): Trouble["kind"] {
    if (size === undefined) return kind === "leaderless" ? "unknown" : kind
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
  holders: ReadonlyMap<string, ReadonlyArray<string>>
) {
  const silent = nats.silences.longerThan(silentMillis)
  if (silent.length === 0 || !(yield* isReached(nats))) return undefined
  const info = yield* Effect.result(streamInfo(nats, silent[0]!, timeoutMillis))
  // The server may have been restarted meanwhile.
  if (nats.silences.longerThan(silentMillis).length === 0) return undefined
  const names = yield* Effect.forEach(nats.servers, runningName, { concurrency: "unbounded" })
  const size = holdersOf(holders.get(silent[0]!) ?? [], names)
  const kind = diagnosis.correct(kindOf(nats, info), size, yield* monotonicMillis)
  const trouble: Trouble = { kind, streams: silent }
  return trouble
})
