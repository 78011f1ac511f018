// Counts the copies of each stream that are current. JetStream goes on with two of three copies and
// says nothing, so that the next failure would be the end: a server that is away or whose disk is
// full, or a copy that does not catch up.
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { streams } from "#streams/index.ts"
import { showCopies } from "#telemetry/nats-metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import type { StreamInfo } from "../stream/info.ts"
import { type Look, StreamWatch } from "./streams.ts"

/** Under load a copy is behind for moments: one that was current within this time counts. */
const currentMillis = 30_000

export interface Copies {
  readonly stream: string
  /** Copies that have, or had within the last 30 s, all that is stored. */
  readonly current: number
  /** Copies that the stream should have. */
  readonly wanted: number
  /** The servers whose copies are not current, by their names. */
  readonly behind: ReadonlyArray<string>
}

/** When each copy was current last, by stream and server: by the monotonic clock. */
export type LastCurrent = Map<string, number>

const copiesOfStream = (
  stream: string,
  { cluster, config }: StreamInfo,
  now: number,
  last: LastCurrent
): Copies => {
  const wanted = config.num_replicas
  if (cluster === undefined) return { stream, current: 1, wanted, behind: [] }
  const behind: Array<string> = []
  for (const { current, name, offline = false } of cluster.replicas ?? []) {
    const key = `${stream} ${name}`
    if (current && !offline) last.set(key, now)
    else if (now - (last.get(key) ?? Number.NEGATIVE_INFINITY) > currentMillis) behind.push(name)
  }
  const peers = (cluster.replicas ?? []).length - behind.length
  return { stream, current: (cluster.leader ? 1 : 0) + peers, wanted, behind }
}

/** The copies of every stream, by a look. Updates `last`. */
export const copiesOf = (look: Look, last: LastCurrent): ReadonlyArray<Copies> =>
  [...look.streams].map(([stream, info]) => copiesOfStream(stream, info, look.ended, last))

/** Shows the copies as metrics, and logs when some are lost and when all are current again. */
export const copiesLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const watch = yield* StreamWatch
    const last: LastCurrent = new Map()
    const warn = makeRateLimitedLog(
      "streams have fewer current copies than they should: a server of NATS is away, its disk is " +
        "full, or it does not catch up. With one more such server NATS stores nothing"
    )
    let wasShort = false
    const told = Effect.fnUntraced(function* (look: Look) {
      const copies = copiesOf(look, last)
      showCopies(copies)
      const short = copies.filter(({ current, wanted }) => current < wanted)
      if (short.length > 0) {
        const servers = [...new Set(short.flatMap(({ behind }) => behind))].join(",")
        const log = short.find(({ stream }) => stream === streams.log.name) ?? short[0]!
        yield* warn({ streams: short.length, servers, copies: log.current, wanted: log.wanted })
      } else if (wasShort) yield* Effect.logInfo("streams have all their copies again")
      wasShort = short.length > 0
    })
    yield* watch.tell((look) => (look === undefined ? Effect.void : told(look)))
  })
)
