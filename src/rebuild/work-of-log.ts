// Makes WORK and the planner fit LOG, where the streams are copies of different moments: a number
// of LOG may stand for another broadcast in WORK, and WORK may lack what the planner has planned.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { laterStart } from "#domain/broadcast-start.ts"
import { changeIn, isPlannedAt } from "#domain/broadcast-state.ts"
import {
  consumerState,
  purgeSubjects,
  resetConsumer,
  streamState
} from "#nats/admin/maintenance.ts"
import { isSameTime } from "#nats/follower/checkpoint.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { streams } from "#streams/index.ts"
import { filters, parseBroadcast, parseState } from "#streams/subjects.ts"
import { note } from "./notes.ts"

const dayMillis = 24 * 60 * 60_000

interface InLog {
  /** When it was accepted, milliseconds since the epoch. */
  readonly at: number
  /** When it was started, or accepted. Absent: it waits for its start, or names no channel. */
  readonly startedAt?: number
}

const readWork = Effect.gen(function* () {
  const plans = new Map<number, number>()
  yield* (yield* EventLog).replay("work", [filters.plans], ({ message }) => {
    if (message.type === "plan") plans.set(message.broadcast, message.acceptedAt)
  })
  return plans
})

/** The broadcast whose planning a message begins. */
const plannedBy = (stored: Stored): number | undefined => {
  const { at, header, seq, subject } = stored
  if (parseBroadcast(subject) !== undefined) return laterStart(header, at) ? undefined : seq
  const change = changeIn(stored.message)
  return change !== undefined && isPlannedAt(change) ? parseState(subject) : undefined
}

/**
 * The broadcasts of LOG that have a plan in WORK, or that have not ended, and those of which LOG
 * counts messages that WORK lacks. LOG has millions of others.
 */
const readLog = Effect.fnUntraced(function* (plans: ReadonlyMap<number, number>, lastWork: number) {
  const broadcasts = new Map<number, InLog>()
  const ended = new Set<number>()
  const cut: Array<number> = []
  const end = (broadcast: number) =>
    plans.has(broadcast) ? ended.add(broadcast) : broadcasts.delete(broadcast)
  const wanted = [filters.broadcasts, filters.states, filters.finished, filters.rejected]
  yield* (yield* EventLog).replay("log", wanted, (stored) => {
    const { at, seq, subject } = stored
    if (subject.startsWith("bellcast.cmd.")) broadcasts.set(seq, { at })
    const planned = plannedBy(stored)
    const origin = broadcasts.get(planned ?? 0)
    if (planned !== undefined && origin !== undefined)
      broadcasts.set(planned, { ...origin, startedAt: at })
    if (subject.startsWith("bellcast.cmd.")) return
    const { message } = stored
    if (message.type === "broadcast.rejected") end(message.broadcast)
    if (message.type !== "broadcast.finished") return
    end(message.broadcast)
    if (message.seq > lastWork) cut.push(message.broadcast)
  })
  return { broadcasts, ended, cut }
})

/** Whether the number stands for something else in LOG. An erased broadcast leaves a gap. */
const isForeign = Effect.fnUntraced(function* (
  broadcasts: ReadonlyMap<number, InLog>,
  lastLog: number,
  broadcast: number,
  acceptedAt: number
) {
  const origin = broadcasts.get(broadcast)
  if (origin !== undefined) return !isSameTime(origin.at, acceptedAt)
  return broadcast > lastLog || (yield* (yield* EventLog).at("log", broadcast)) !== undefined
})

/** Removes what WORK has of broadcasts that LOG does not have, or has ended since the copy. */
const purge = Effect.fnUntraced(function* (
  foreign: ReadonlyArray<number>,
  ended: ReadonlyArray<number>
) {
  // Their outcomes stay for audits. Without a plan, LOG has the counts.
  const jobs = ended.flatMap((broadcast) => [
    filters.shardsOf(broadcast),
    filters.retriesOf(broadcast),
    filters.planOf(broadcast)
  ])
  const all = foreign.flatMap((broadcast) => [
    filters.shardsOf(broadcast),
    filters.retriesOf(broadcast),
    filters.outcomesOf(broadcast),
    filters.deadLettersOf(broadcast),
    // Last: an interrupted rebuild finds the broadcast again by its plan.
    filters.planOf(broadcast)
  ])
  yield* Effect.forEach([...jobs, ...all], (filter) => purgeSubjects(streams.work, filter), {
    discard: true
  })
})

/** Run it before the buckets are built. Changes nothing if the streams are of the same moment. */
export const fitWorkToLog = Effect.gen(function* () {
  const planner = streams.log.consumers.planner
  // Before the plans are read: a planner that runs acknowledges what it has planned since.
  const floor = (yield* consumerState(streams.log, planner))?.ack_floor.stream_seq ?? 0
  const plans = yield* readWork
  const lastWork = (yield* streamState(streams.work))?.lastSeq ?? 0
  const { broadcasts, cut, ended } = yield* readLog(plans, lastWork)
  const lastLog = (yield* streamState(streams.log))?.lastSeq ?? 0
  const foreign: Array<number> = []
  for (const [broadcast, acceptedAt] of plans)
    if (yield* isForeign(broadcasts, lastLog, broadcast, acceptedAt)) foreign.push(broadcast)
  yield* purge(foreign, cut)
  for (const broadcast of foreign) plans.delete(broadcast)

  const since = (yield* Clock.currentTimeMillis) - streams.work.maxAgeMillis + dayMillis
  const forgotten = [...broadcasts].find(
    ([seq, { startedAt = 0 }]) =>
      seq <= floor && startedAt >= since && !plans.has(seq) && !ended.has(seq)
  )?.[0]
  if (forgotten !== undefined) yield* resetConsumer(streams.log, planner, forgotten)
  if (foreign.length > 0)
    yield* note(`removed the work of ${foreign.length} broadcasts that LOG does not have`)
  if (forgotten !== undefined)
    yield* note(`broadcasts from ${forgotten} on are planned that WORK does not have`)
  return { lastWork, taken: cut.length === 0 ? 0 : lastLog }
})
