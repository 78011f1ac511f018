// Compares a simulated LOG with a real one: the same messages, appended to a real nats-server and
// trimmed by the real projector.
import { setTimeout as sleep } from "node:timers/promises"
import { Effect, Layer, Schedule } from "effect"
import type { MessageType } from "#domain/messages/table.ts"
import { HistoryDays, readHistoryPlace } from "#history/place.ts"
import { streamState } from "#nats/admin/maintenance.ts"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import type { Append } from "#nats/stream/append.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { projectionLayer } from "#projection/projector.ts"
import { streams } from "#streams/index.ts"
import { quiet, rebuildAt } from "../support/history.ts"
import { startNats } from "./servers.ts"
import { type Held, History } from "./years-history.ts"
import { dayMillis, Site } from "./years-site.ts"
import type { Samples } from "./years-sizes.ts"

const size = { users: 200, days: 200, goneShare: 0.5 }
const historyDays = 95
/** Before and after the end of the history: more than the clocks of both processes differ. */
const gapMillis = 500

interface Compared {
  readonly users: number
  readonly days: number
  readonly historyDays: number
  readonly whole: { readonly simulated: Held; readonly real: Held }
  readonly trimmed: { readonly simulated: Held; readonly real: Held }
}

/** Appends messages of a simulated LOG, each of which gets the sequence that it has there. */
const appendAll = Effect.fnUntraced(function* (
  { log }: Site,
  samples: Samples,
  from: number,
  upTo: number,
  last: Map<string, number>
) {
  const { append } = yield* EventLog
  for (let seq = from; seq <= upTo; seq++) {
    const { message, subject } = log.stored(seq)
    const { type, ...body } = message
    const { headers } = samples.get(log.kindOf(seq))!
    const given = { subject, type, body, headers, expect: last.get(subject) ?? 0 }
    const appended = yield* append("log", given as unknown as Append<MessageType>)
    if (appended.seq !== seq) throw new Error(`${subject} has ${appended.seq}, not ${seq}`)
    last.set(subject, seq)
  }
})

const heldIn = Effect.map(streamState(streams.log), (state): Held => {
  const { bytes = 0, messages = 0 } = state ?? {}
  return { bytes, messages }
})

export const compareWithReal = async (samples: Samples): Promise<Compared> => {
  // The messages say the time of the simulation, and the server gives them the present one. Both
  // have the same ones before the end of the history.
  const begin = Date.now() - (size.days - historyDays) * dayMillis
  const site = new Site({ ...size, begin }, samples)
  for (let day = 0; day < size.days; day++) site.nextDay()
  const whole = new History(site, samples)
  const trimmed = new History(site, samples, { days: historyDays })
  const end = begin + size.days * dayMillis
  for (const each of [whole, trimmed]) await each.look(end)
  let lastOld = 0
  while (site.log.at(lastOld + 1) < end - historyDays * dayMillis) lastOld++

  const nats = await startNats()
  const layer = Layer.merge(natsLayer({ url: nats.url, name: "years" }), quiet)
  const run = <A, E>(effect: Effect.Effect<A, E, Layer.Success<typeof layer>>) =>
    Effect.runPromise(effect.pipe(Effect.provide(layer), Effect.scoped))
  const last = new Map<string, number>()
  await run(Effect.andThen(provision(1), appendAll(site, samples, 1, lastOld, last)))
  await sleep(gapMillis)
  const before = Date.now()
  await sleep(gapMillis)
  await run(appendAll(site, samples, lastOld + 1, site.log.last, last))
  const realWhole = await run(heldIn)
  await rebuildAt(nats.url)
  const history = Layer.succeed(HistoryDays, {
    /** Of the moment: the history begins at a time. */
    get usual() {
      return (Date.now() - before) / dayMillis
    },
    shortest: 0
  })
  const isDone = Effect.map(
    readHistoryPlace,
    ({ deleting, historyUpTo }) => historyUpTo >= lastOld && deleting.length === 0
  )
  const realTrimmed = await Effect.repeat(isDone, {
    until: (done) => done,
    schedule: Schedule.spaced("100 millis")
  }).pipe(
    Effect.timeout("5 minutes"),
    Effect.andThen(heldIn),
    Effect.provide(projectionLayer.pipe(Layer.provideMerge(Layer.merge(layer, history)))),
    Effect.runPromise
  )
  await nats.stop()
  const { days, users } = size
  return {
    ...{ users, days, historyDays },
    whole: { simulated: whole.held, real: realWhole },
    trimmed: { simulated: trimmed.held, real: realTrimmed }
  }
}
