// Which processes of the service run, with which roles, and what each does with the messages that
// it reads. Each announces itself on core NATS, so that every process knows of a role that nobody
// runs, before messages wait for it.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { nextMultiple } from "#clock/clocks.ts"
import { type Role, roles } from "#config"
import { numbersRead } from "#domain/messages/forms.ts"
import { subjects } from "#streams/subjects.ts"
import { Nats } from "./connection.ts"
import { PubSub } from "./pubsub.ts"

/** At the moments of the looks of an idle process, which then wakes for both at once. */
const announceMillis = 3_000
/** Three announcements that a process missed, with a second for slow deliveries. */
const forgottenMillis = 10_000
/** Only the service may publish on the subject: a larger number is a mistake. */
const processesMax = 1_000
/** The same of readers, of which there are seven. */
const readersMax = 100
/** Announced by a process that starts or drains: it reads streams, and others must know that. */
export const noRole = "none"
/** For how long the heartbeat names a message that this version cannot read. */
const unreadableMillis = 30_000

const Millis = Schema.Finite

/** A reader is a durable consumer or a follower, by its name. */
const WorkReport = Schema.Struct({
  reader: Schema.String,
  /** How long ago a message ended last; absent: none did. */
  endedMillis: Schema.optionalKey(Millis),
  /** For how long some message has been taken that has not ended; absent: none is. */
  takenMillis: Schema.optionalKey(Millis),
  /** Why a message that was taken did not end. */
  reason: Schema.optionalKey(Schema.String),
  /** For how long NATS has refused to give out messages; absent: it does not. */
  refusedMillis: Schema.optionalKey(Millis)
})
type WorkReport = typeof WorkReport.Type

const Announcement = Schema.Struct({
  v: Schema.Literal(1),
  /** An id that the process makes at its start. */
  process: Schema.String,
  /** None: the process ends. Roles that this version does not know are ignored. */
  roles: Schema.Array(Schema.String),
  /** The number that it reads of each message; absent: 1, as of each that is not named. */
  reads: Schema.optionalKey(Schema.Record(Schema.String, Schema.Int)),
  /** What the process does as a reader of messages. */
  work: Schema.optionalKey(Schema.Array(WorkReport))
})

const decode = Schema.decodeUnknownExit(Announcement)

export interface RoleState {
  readonly role: Role
  /** Processes that run the role, this one included. */
  readonly processes: number
  /** For how long nobody has run the role; 0 while somebody does. */
  readonly absentMillis: number
}

/** What all processes do with the messages of a reader: a durable consumer or a follower. */
export interface Work {
  readonly reader: string
  /** How long ago a message ended last, as far as this process heard. */
  readonly endedMillis: number
  /** The longest time for which a process has had messages that do not end; 0: none has. */
  readonly takenMillis: number
  /** Why they do not end, if their process says so. */
  readonly reason: string | undefined
  /** The longest time for which NATS has refused messages to a process; 0: to none. */
  readonly refusedMillis: number
}

interface Heard {
  readonly roles: ReadonlyArray<string>
  readonly reads: Readonly<Record<string, number>>
  readonly work: ReadonlyArray<WorkReport>
  readonly at: number
}

/**
 * What a process heard of all processes, itself included. While its own announcements do not come
 * back, nothing is known: the state is that of the last one. Times: those of `performance`.
 */
export class ProcessList {
  readonly #heard = new Map<string, Heard>()
  /** When a message of a reader ended last. */
  readonly #endedAt = new Map<string, number>()
  /** When somebody announced a role last, or that it ends. */
  readonly #runAt = new Map<string, number>()
  readonly #own: string
  /** Since when this process announces itself; undefined: not yet. */
  #announcingSince: number | undefined
  /** Since when the own announcements come back without a gap, and when the last one did. */
  #hearingSince = Number.POSITIVE_INFINITY
  #hearingAt = Number.NEGATIVE_INFINITY
  /** Since when the connection is there without a gap. */
  #connectedSince = 0

  constructor(own: string) {
    this.#own = own
  }

  /** This process announces itself from now on. */
  begin(now: number): void {
    this.#announcingSince = now
  }

  /** The connection is back: what others announced meanwhile was missed. */
  reconnect(now: number): void {
    this.#connectedSince = now
  }

  /** Notes a message. Never throws: other bodies than announcements are ignored. */
  receive(body: unknown, now: number): void {
    const decoded = decode(body)
    if (decoded._tag === "Failure") return
    const { process, reads = {}, roles: named, work = [] } = decoded.value
    if (process === this.#own) {
      if (now - this.#hearingAt > forgottenMillis) this.#hearingSince = now
      this.#hearingAt = now
    }
    for (const [id, { at }] of this.#heard)
      if (this.#age(at, now) > forgottenMillis) this.#heard.delete(id)
    for (const role of [...named, ...(this.#heard.get(process)?.roles ?? [])])
      if (roles.some((each) => each === role)) this.#runAt.set(role, now)
    this.#heard.delete(process)
    if (named.length > 0 && this.#heard.size < processesMax)
      this.#heard.set(process, { roles: named, reads, work, at: now })
    for (const { endedMillis, reader } of work) this.#noteEnd(reader, endedMillis, now)
  }

  #noteEnd(reader: string, endedMillis: number | undefined, now: number): void {
    const former = this.#endedAt.get(reader)
    if (endedMillis === undefined || (former === undefined && this.#endedAt.size >= readersMax))
      return
    this.#endedAt.set(reader, Math.max(former ?? Number.NEGATIVE_INFINITY, now - endedMillis))
  }

  /** False: this process announces itself, and for 10 s has not received that. */
  isKnown(now: number): boolean {
    const since = Math.max(this.#hearingAt, this.#announcingSince ?? now)
    return now - since <= forgottenMillis
  }

  #running(now: number): ReadonlyArray<Heard> {
    return [...this.#heard.values()].filter(({ at }) => this.#age(at, now) <= forgottenMillis)
  }

  /**
   * The highest number of a message that all running processes read; 1 while some may not be known:
   * until this process has heard itself, and so everybody else, for 10 s on one connection. A
   * process that runs announces itself three times in that time, or counts as gone.
   */
  readByAll(message: string, now: number): number {
    const listensSince = Math.max(this.#hearingSince, this.#connectedSince)
    const hears = now - this.#hearingAt <= forgottenMillis && this.#heard.size < processesMax
    if (!hears || now - listensSince < forgottenMillis) return 1
    return Math.min(...this.#running(now).map(({ reads }) => reads[message] ?? 1))
  }

  /** What all processes do as this reader. */
  work(reader: string, now: number): Work {
    const reports = this.#running(now).flatMap(({ at, work }) =>
      work.filter((each) => each.reader === reader).map((each) => ({ ...each, age: now - at }))
    )
    const longest = (millis: (report: WorkReport) => number | undefined) =>
      Math.max(0, ...reports.map((each) => (millis(each) ?? -Infinity) + each.age))
    return {
      reader,
      endedMillis: this.#age(this.#endedAt.get(reader) ?? Number.NEGATIVE_INFINITY, now),
      takenMillis: longest(({ takenMillis }) => takenMillis),
      reason: reports.find(({ reason }) => reason !== undefined)?.reason,
      refusedMillis: longest(({ refusedMillis }) => refusedMillis)
    }
  }

  /** Every role, in the order of the settings. */
  states(now: number): ReadonlyArray<RoleState> {
    const known = this.isKnown(now) ? now : this.#hearingAt
    const running = this.#running(known)
    return roles.map((role) => {
      const processes = running.filter(({ roles: named }) => named.includes(role)).length
      const absent = processes > 0 ? 0 : this.#age(this.#runAt.get(role) ?? 0, known)
      return { role, processes, absentMillis: Math.max(0, absent) }
    })
  }

  /** Time in which this process heard itself, and could have heard another one. */
  #age(at: number, now: number): number {
    return now - Math.max(at, this.#hearingSince)
  }
}

export class Processes extends Context.Service<
  Processes,
  {
    /**
     * Announces that this process runs these roles, until the scope closes; then those that it
     * announced before, if any, or that it ends.
     */
    readonly announce: (
      own: ReadonlyArray<Role | typeof noRole>
    ) => Effect.Effect<void, never, Scope.Scope>
    /** The highest number of a message that all running processes read. */
    readonly readByAll: (message: string) => number
    /** What this process does with the messages that it reads. It announces that, too. */
    readonly tally: WorkTally
    /** What all processes do as a reader. Where nobody heard of an end, that of the silence. */
    readonly work: (reader: string) => Work
    /** Every role, and how many processes run it. */
    readonly states: () => ReadonlyArray<RoleState>
    /** False: NATS does not bring back what this process announces, so nothing is known. */
    readonly isKnown: () => boolean
  }
>()("bellcast/nats/Processes") {
  static readonly layer = Layer.effect(
    Processes,
    Effect.gen(function* () {
      const pubsub = yield* PubSub
      const { nc } = yield* Nats
      const own = (yield* Random.nextInt).toString(36)
      const list = new ProcessList(own)
      const tally = new WorkTally()
      yield* pubsub.subscribe(subjects.process, (body) => list.receive(body, performance.now()))
      yield* Stream.fromAsyncIterable(nc.status(), String).pipe(
        Stream.runForEach(({ type }) =>
          Effect.sync(() => {
            if (type === "reconnect") list.reconnect(performance.now())
          })
        ),
        Effect.ignore,
        Effect.forkScoped
      )
      const announced: Array<ReadonlyArray<string>> = []
      const publish = () =>
        pubsub.publish(subjects.process, {
          v: 1,
          process: own,
          roles: announced.at(-1) ?? [],
          reads: numbersRead,
          work: tally.report()
        })
      return Processes.of({
        announce: Effect.fnUntraced(function* (named) {
          const isFirst = announced.length === 0
          announced.push(named)
          yield* Effect.addFinalizer(() =>
            Effect.sync(() => {
              announced.pop()
              publish()
            })
          )
          if (!isFirst) return publish()
          list.begin(performance.now())
          const next = Effect.andThen(Effect.sync(publish), nextMultiple(announceMillis))
          yield* Effect.forkScoped(Effect.forever(next))
        }),
        readByAll: (message) => list.readByAll(message, performance.now()),
        tally,
        work: (reader) => list.work(reader, performance.now()),
        states: () => list.states(performance.now()),
        isKnown: () => list.isKnown(performance.now())
      })
    })
  )
}

/** A message that was given back and did not come again: another process has it. */
const givenBackMillisMax = 60_000
/** Messages of a reader that are noted: more than a process has in hand. */
const takenMax = 4_096
const reasonMax = 200

interface Reader {
  /**
   * The messages that were taken and have not ended, by their sequences: when each was given back
   * without an end; Infinity: it is in hand.
   */
  readonly taken: Map<number, number>
  takenSince: number | undefined
  endedAt: number | undefined
  refusedSince: number | undefined
  reason: string | undefined
}

/**
 * What a process does with the messages that it takes from durable consumers, and as a follower.
 * Progress is a message that ended: acknowledged, or given back as it is meant to wait. A message
 * that is taken again and again is none. Times are those of `performance`.
 */
export class WorkTally {
  readonly #readers = new Map<string, Reader>()
  #unreadable: { readonly text: string; readonly at: number } | undefined

  /** A message was met that only a later version reads. `text` says which. */
  meetUnreadable(text: string, now = performance.now()): void {
    this.#unreadable = { text, at: now }
  }

  /** The last message of this half minute that only a later version reads, in words. */
  unreadable(now = performance.now()): string | undefined {
    const met = this.#unreadable
    return met !== undefined && now - met.at < unreadableMillis ? met.text : undefined
  }

  #of(reader: string): Reader {
    const found = this.#readers.get(reader)
    if (found !== undefined) return found
    const made: Reader = {
      taken: new Map(),
      takenSince: undefined,
      endedAt: undefined,
      refusedSince: undefined,
      reason: undefined
    }
    this.#readers.set(reader, made)
    return made
  }

  take(name: string, seq: number, now = performance.now()): void {
    const reader = this.#of(name)
    reader.refusedSince = undefined
    reader.takenSince ??= now
    if (reader.taken.has(seq) || reader.taken.size < takenMax)
      reader.taken.set(seq, Number.POSITIVE_INFINITY)
  }

  /** A message ended; without a sequence, some message did, or a part of one. */
  end(name: string, seq?: number, now = performance.now()): void {
    const reader = this.#of(name)
    reader.endedAt = now
    reader.reason = undefined
    if (seq !== undefined) this.drop(name, seq)
  }

  /** A message is no more this process's. */
  drop(name: string, seq: number): void {
    const reader = this.#of(name)
    reader.taken.delete(seq)
    if (reader.taken.size === 0) reader.takenSince = undefined
  }

  /** A message could not be handled, and comes again. */
  hinder(name: string, seq: number, reason: string, now = performance.now()): void {
    const reader = this.#of(name)
    reader.reason = reason.slice(0, reasonMax)
    if (reader.taken.has(seq)) reader.taken.set(seq, now)
  }

  /** NATS gave no messages, but an error. */
  refuse(name: string, now = performance.now()): void {
    this.#of(name).refusedSince ??= now
  }

  /** NATS accepted a pull. */
  accept(name: string): void {
    this.#of(name).refusedSince = undefined
  }

  report(now = performance.now()): ReadonlyArray<WorkReport> {
    return [...this.#readers].map(([name, reader]) => {
      for (const [seq, givenBackAt] of reader.taken)
        if (now - givenBackAt > givenBackMillisMax) this.drop(name, seq)
      const { endedAt, reason, refusedSince, takenSince } = reader
      return {
        reader: name,
        ...(endedAt !== undefined && { endedMillis: now - endedAt }),
        ...(takenSince !== undefined && { takenMillis: now - takenSince }),
        ...(takenSince !== undefined && reason !== undefined && { reason }),
        ...(refusedSince !== undefined && { refusedMillis: now - refusedSince })
      }
    })
  }
}
