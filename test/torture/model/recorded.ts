// What the service has recorded in LOG and WORK, read past it and counted by the rig's own rules.
// Each message is read once, while it is younger than the history: the service deletes old ones.
import type { JsMsg } from "@nats-io/jetstream"
import { decodeMessage } from "#domain/messages/forms.ts"
import type { PushResult } from "#domain/outcome.ts"
import { filters, parseBroadcast, parseOfBroadcast, parseSubscription } from "#streams/subjects.ts"
import { decodeToken } from "#streams/tokens.ts"
import type { RigClient } from "../nats/client.ts"
import { readStream } from "../nats/read.ts"
import { againOf } from "./model.ts"

/** Results of one push, in the order of WORK. */
export interface RecordedPush {
  /** Results of the shard, of which there must be one. */
  firsts: number
  /** Results that are not `retrying`, of which there must be one. */
  ends: number
  last: { readonly fate: string; readonly reason: string; readonly status: number | undefined }
  /** Attempts without a response: the push may have been taken all the same. */
  unanswered: number
  /** An attempt counted. */
  isTried: boolean
  /** An attempt that counted failed, for another reason than that its push service throttles. */
  isFailed: boolean
}

export interface RecordedBroadcast {
  readonly id: number
  /** The name of a channel, or what stands for several. */
  readonly channel: string
  readonly marker: string | undefined
  /** Sequences of the messages with those of its recipients that its own does not have. */
  readonly parts: ReadonlyArray<number>
  /** By pseudonym and subscription. */
  readonly pushes: Map<string, RecordedPush>
  /** When attempts began that sent something, in milliseconds since the epoch. */
  readonly attempts: Array<number>
  /** Sum of the sizes that the shards stated. */
  accepted: number
  withoutSubscription: number
  planned: boolean
  rejected: boolean
  /** Whether it waits for a time when it is stored. */
  readonly isScheduled: boolean
  readonly starts: Array<Start>
  /** Pauses because too many pushes failed. */
  readonly ownPauses: Array<OwnPause>
}

interface OwnPause {
  /** A resume begins the next one. */
  readonly run: number
  readonly attempted: number
  readonly failed: number
}

/** The start of a scheduled broadcast. */
interface Start {
  readonly seq: number
  /** When it was stored, and when it was due, milliseconds since the epoch. */
  readonly at: number
  readonly dueAt: number
}

/** A message of LOG. */
export interface Noted {
  readonly subject: string
  /** When it was stored, milliseconds since the epoch. */
  readonly at: number
}

export interface Recorded {
  /** Each message of LOG, by sequence, those that were deleted since, too. */
  readonly noted: Map<number, Noted>
  /** Old messages that the service has deleted. */
  readonly trimmed: Set<number>
  /** The longest time between two readings, in milliseconds. */
  readonly gapMillisMax: () => number
  /** Milliseconds since the last reading. */
  readonly gapMillis: () => number
  readonly broadcasts: Map<number, RecordedBroadcast>
  /** Broadcasts whose final counts are in LOG. */
  readonly finished: Set<number>
  /** Sequence of the last message that stored a subscription, by pseudonym and subscription. */
  readonly stored: Map<string, number>
  /** Reasons of ends that the user did not ask for, by pseudonym and subscription. */
  readonly removals: Map<string, string>
  /** Reads on to the present end of both streams. */
  readonly update: () => Promise<void>
  /**
   * Deletes from WORK what was read before the last call, as the age of its messages does after 35
   * days. All broadcasts of then must be finished.
   */
  readonly expireWork: () => Promise<void>
}

const bodyOf = (message: JsMsg) => {
  const { data, parts = [] } = JSON.parse(message.string())
  const topic = message.headers?.get("Topic") || undefined
  return { marker: (topic ?? data?.marker) as string | undefined, parts: parts as Array<number> }
}

/** Section 4.8 of the contract: what counts towards `pause_when`. */
const isFailure = ({ attempt, fate, reason }: PushResult): boolean =>
  attempt > 0 &&
  (fate === "dead" ||
    fate === "expired" ||
    (fate === "retrying" && reason !== "throttled" && reason !== "push-service-throttled"))

const takeOutcome = (
  broadcast: RecordedBroadcast,
  of: "shard" | "push",
  message: Extract<ReturnType<typeof decodeMessage>, { type: "outcome" }>
) => {
  broadcast.accepted += message.pushes
  broadcast.withoutSubscription += message.withoutSubscription ?? 0
  for (const result of message.results) {
    const { at, fate, millis, reason, status, subscription, user } = result
    if (millis > 0) broadcast.attempts.push(at - millis)
    const last = { fate, reason, status }
    const key = `${user}.${subscription}`
    const none = { firsts: 0, ends: 0, unanswered: 0, isTried: false, isFailed: false }
    const push = broadcast.pushes.get(key) ?? { ...none, last }
    push.last = last
    if (of === "shard") push.firsts++
    if (fate === "retrying" && status === undefined) push.unanswered++
    if (fate !== "retrying") push.ends++
    if (result.attempt > 0) push.isTried = true
    if (isFailure(result)) push.isFailed = true
    broadcast.pushes.set(key, push)
  }
}

export const makeRecorded = (client: () => RigClient): Recorded => {
  const broadcasts = new Map<number, RecordedBroadcast>()
  const finished = new Set<number>()
  const stored = new Map<string, number>()
  const removals = new Map<string, string>()
  const noted = new Map<number, Noted>()
  const trimmed = new Set<number>()
  let logFrom = 1
  let workFrom = 1
  let expiring = 0
  let readAt = performance.now()
  let gapMillisMax = 0
  const gapMillis = () => performance.now() - readAt

  const decoded = (message: JsMsg) =>
    decodeMessage(message.headers?.get("Bellcast-Type") ?? "", message.string())

  const takeBroadcast = (message: JsMsg) => {
    const place = parseBroadcast(message.subject)
    if (place === undefined) return
    const channel = decodeToken(place.channel) ?? place.channel
    const redrives = Number(message.headers?.get("Bellcast-Redrives"))
    const former = broadcasts.get(redrives)?.marker
    const { marker: own, parts } = bodyOf(message)
    const marker = former === undefined ? own : againOf(former)
    const pushes = new Map<string, RecordedPush>()
    const none = { attempts: [], accepted: 0, withoutSubscription: 0 }
    const dueAt = Date.parse(message.headers?.get("Bellcast-Start-At") ?? "")
    const isScheduled = dueAt > message.time.getTime()
    const facts = { planned: false, rejected: false, isScheduled, starts: [], ownPauses: [] }
    const id = message.seq
    broadcasts.set(id, { id, channel, marker, parts, pushes, ...none, ...facts })
  }

  const takeLog = (message: JsMsg) => {
    // A reading that fails later goes on from here: a fact that is taken twice counts twice.
    logFrom = message.seq + 1
    noted.set(message.seq, { subject: message.subject, at: message.time.getTime() })
    if (message.subject.startsWith("bellcast.cmd.broadcast.")) return takeBroadcast(message)
    const rejected = /^bellcast\.evt\.rejected\.(\d+)$/.exec(message.subject)
    const broadcast = broadcasts.get(Number(rejected?.[1]))
    if (broadcast !== undefined) broadcast.rejected = true
    const fact = decoded(message)
    if (fact.type === "broadcast.finished") finished.add(fact.broadcast)
    if (fact.type === "broadcast.started") {
      const start = { at: message.time.getTime(), dueAt: Date.parse(fact.schedule.at) }
      broadcasts.get(fact.broadcast)?.starts.push({ seq: message.seq, ...start })
    }
    if (fact.type === "broadcast.paused" && fact.because !== undefined)
      broadcasts.get(fact.broadcast)?.ownPauses.push({ run: fact.run, ...fact.because })
    const keyOf = (id: string) => `${parseSubscription(message.subject)}.${id}`
    const end = (id: string, why: string) => removals.set(keyOf(id), why)
    if (fact.type === "subscription.put") stored.set(keyOf(fact.id), message.seq)
    if (fact.type === "subscription.gone") end(fact.id, `gone: ${fact.cause}`)
    if (fact.type === "subscription.suspended") end(fact.id, `suspended: ${fact.cause}`)
    if (fact.type === "subscription.moved") for (const { id } of fact.moved) end(id, "moved")
  }

  /** Of broadcasts that are in LOG beyond the end of the last read. */
  let early: ReadonlyArray<JsMsg> = []

  const takeWork = (message: JsMsg) => {
    workFrom = Math.max(workFrom, message.seq + 1)
    const place = parseOfBroadcast(message.subject)
    if (place === undefined) return
    const broadcast = broadcasts.get(place.broadcast)
    if (broadcast === undefined) {
      early = [...early, message]
      return
    }
    const of = decoded(message)
    if (of.type === "plan") broadcast.planned = true
    if (of.type === "outcome") takeOutcome(broadcast, place.of, of)
  }

  /** In the order of WORK, before what comes after them. */
  const takeEarly = () => {
    const waiting = early
    early = []
    for (const message of waiting) takeWork(message)
  }

  const all = [filters.commands, "bellcast.evt.>"]
  return {
    noted,
    trimmed,
    gapMillis,
    gapMillisMax: () => gapMillisMax,
    broadcasts,
    finished,
    stored,
    removals,
    expireWork: async () => {
      if (expiring > 0) await client().jsm.streams.purge("BELLCAST_WORK", { seq: expiring })
      expiring = workFrom
    },
    update: async () => {
      const work = [filters.plans, filters.outcomes]
      logFrom = await readStream(client(), "BELLCAST_LOG", all, logFrom, takeLog)
      gapMillisMax = Math.max(gapMillisMax, gapMillis())
      readAt = performance.now()
      takeEarly()
      workFrom = await readStream(client(), "BELLCAST_WORK", work, workFrom, takeWork)
    }
  }
}
