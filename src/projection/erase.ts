// The erasure of a user. The fold empties the list of the user and forgets who owned the user's
// endpoints. What LOG has is deleted soon after, by sequence and overwritten, the oldest message
// first. A term that was killed meanwhile leaves the command, by which the next one goes on.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { comesBack, overIn } from "#domain/erasure.ts"
import { noCounts, registeredSince } from "#domain/registration.ts"
import { endpointHash, lastOwnerOf, noOwners, withOwner } from "#domain/subscription/owners.ts"
import { emptyList } from "#domain/subscription/subscription.ts"
import { subjectsAbout } from "#history/subject.ts"
import { streamState } from "#nats/admin/maintenance.ts"
import { unavailable } from "#nats/connection/errors.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { type EntryKey, keys } from "#streams/buckets.ts"
import { streams } from "#streams/index.ts"
import { filters, parseErasure, parseRegistration, subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { keepBegins } from "./channel-sums.ts"
import { makeDeleteLetters } from "./letters.ts"
import type { Erasure, Sets } from "./sets.ts"
import type { Step } from "./step.ts"

type Erase = Extract<Step, { readonly kind: "erase" }>

/** Erasures that are completed at once: most of the time each waits for the next checkpoint. */
const erasuresAtOnce = 32
/** Subjects of one user whose messages are deleted at once. */
const subjectsAtOnce = 4
/** Between two looks at what an erasure waits for: the checkpoint is stored each second. */
const lookMillis = 250
const waitMillisMax = 60_000
/** Registrations that are forgotten in a call: the projector applies nothing else meanwhile. */
const forgottenMax = 300
/** Messages of one subject that are read at once. */
const readAtOnce = 100
/**
 * Erasures of this time are looked at again when a term begins, or another run of nats-server leads
 * the bucket: a killed one may have brought messages back.
 */
const lookedAtMillis = 24 * 60 * 60_000

/** Loads the list of a user, and the pages of all endpoints that LOG has of the user. */
export const loadErasure = Effect.fnUntraced(function* (
  sets: Sets,
  { key, stored: { seq }, user }: Erase
) {
  const { endpoints, isLive, lists, log, owners } = sets
  const bytes = yield* lists.load([key])
  const hashes = new Set<string>()
  const note = ({ message, seq: at }: Stored) => {
    if (at < seq && message.type === "subscription.put")
      hashes.add(endpointHash(message.data.endpoint))
  }
  const own = [subjects.subscription(user)]
  // A rebuild is no crash behind, and an auditor may not create a consumer.
  if (isLive) yield* log.replay("log", own, note)
  else if (lists.get(key) !== undefined) yield* log.scan("log", own, note)
  endpoints.set(seq, [...hashes])
  return bytes + (yield* owners.load([...hashes].map(keys.endpointOwners)))
})

export const foldErasure = (sets: Sets, { by, key, stored, user }: Erase): void => {
  const { emptied, endpoints, foldedUpTo, isLive, lists, owners } = sets
  const { at, seq } = stored
  const pages = new Set<EntryKey<"endpointOwners">>()
  for (const hash of endpoints.get(seq) ?? []) {
    const pageKey = keys.endpointOwners(hash)
    const page = owners.get(pageKey) ?? noOwners
    // Noted by an earlier term, and the user may have come back since.
    if (page.seq >= seq && !pages.has(pageKey)) continue
    if (lastOwnerOf(page, hash)?.owner !== user) continue
    owners.set(pageKey, withOwner(page, hash, undefined, seq, at), seq)
    pages.add(pageKey)
  }
  const list = lists.get(key)
  emptied.add(key)
  if (!isLive) {
    lists.remove(key)
    return
  }
  // An entry that is removed tells workers nothing, so an empty one takes its place. An earlier
  // term may have removed the former one only.
  const mayBeKnown = list === undefined ? seq <= foldedUpTo : list.seq < seq
  if (mayBeKnown) lists.replace(key, { ...emptyList }, seq)
  offer(sets, { user, command: seq, by, isDone: false })
}

const offer = (sets: Sets, erasure: Erasure): void => {
  if (!Queue.offerUnsafe(sets.erasures, erasure)) sets.areMoreErasures = true
}

/**
 * Forgets the registrations of erased users at once: no worker sends anything by them, as the list
 * of their user is empty.
 */
export const forgetErased = Effect.fnUntraced(function* ({ erased, registrations }: Sets) {
  if (erased.size === 0) return
  const some = [...erased].slice(0, forgottenMax)
  yield* registrations.load(some)
  for (const key of some) if (registrations.get(key)?.on === false) registrations.remove(key)
  yield* registrations.flush
  for (const key of some) erased.delete(key)
})

/** Looks for erasures that no earlier term completed, and for those of the last day. */
export const findErasures = Effect.fnUntraced(function* (sets: Sets) {
  const { log } = sets
  sets.areMoreErasures = false
  // Erasures of this term, too, which may have failed.
  const upTo = (yield* streamState(streams.log))?.lastSeq ?? 0
  const since = (yield* Clock.currentTimeMillis) - lookedAtMillis
  const from = (yield* log.firstSince("log", since)) ?? upTo + 1
  // A crash between the fact and the removal of the command leaves both.
  const asked = new Set<number>()
  const found = ({ message, seq, subject }: Stored) => {
    const user = parseErasure(subject)
    if (user === undefined) return
    if (message.type === "user.erase") {
      asked.add(seq)
      offer(sets, { user, command: seq, by: message.by, isDone: false })
    }
    if (message.type === "user.erased" && !asked.has(message.command))
      offer(sets, { user, command: message.command, by: message.by, isDone: true })
  }
  yield* log.readOn("log", [filters.erases], { after: 0, upTo }, found)
  yield* log.readOn("log", [filters.erased], { after: from - 1, upTo }, found)
})

/** Completes erasures until the scope closes. A look finds those that fail. */
export const completeErasures = Effect.fnUntraced(function* (sets: Sets) {
  const warn = makeRateLimitedLog(
    "an erasure could not be completed: it is tried again each minute (NATS must permit " +
      "$JS.API.STREAM.MSG.DELETE.BELLCAST_LOG)"
  )
  // A look may find what waits here already.
  const underWay = new Set<number>()
  const deleteLetters = makeDeleteLetters(sets)
  const one = Effect.flatMap(Queue.take(sets.erasures), (erasure) => {
    const { command, user } = erasure
    if (underWay.has(command)) return Effect.void
    underWay.add(command)
    return complete(sets, erasure, deleteLetters).pipe(
      Effect.catch((err) => {
        sets.areMoreErasures = true
        return warn({ person: user, err })
      }),
      Effect.ensuring(Effect.sync(() => underWay.delete(command)))
    )
  })
  yield* Effect.forEach(Array.from({ length: erasuresAtOnce }), () => Effect.forever(one), {
    concurrency: "unbounded",
    discard: true
  })
})

const complete = Effect.fnUntraced(function* (
  sets: Sets,
  erasure: Erasure,
  deleteLetters: ReturnType<typeof makeDeleteLetters>
) {
  const { command, isDone } = erasure
  yield* untilSaved(sets, command)
  if (!isDone && (yield* sets.log.at("log", command)) === undefined) return
  if (!isDone) yield* untilSaved(sets, yield* endRegistrations(erasure.user, command))
  const { ids, over } = yield* messagesOver(sets, erasure)
  // First: a later term finds the ids in these messages.
  const letters = isDone
    ? Effect.void
    : yield* deleteLetters({ user: erasure.user, ids, before: command })
  yield* keepBegins(
    sets,
    over.flatMap(({ seq, subject }) => {
      const channel = parseRegistration(subject)?.channel
      return channel === undefined ? [] : { channel, upTo: seq }
    })
  )
  yield* forgetEntries(sets, over)
  yield* deleteOver(sets, over)
  yield* letters
  if (!isDone) yield* record(sets, erasure)
})

const until = Effect.fnUntraced(function* (isSo: () => boolean) {
  for (let waited = 0; !isSo(); waited += lookMillis) {
    if (waited >= waitMillisMax)
      return yield* unavailable("erase")(new Error("the buckets are not stored"))
    yield* Effect.sleep(lookMillis)
  }
})

/** Waits until no later term applies a message again. */
const untilSaved = (sets: Sets, seq: number) => until(() => sets.saved >= seq)

/**
 * Ends the registrations of a user that began before a sequence. Returns the sequence of the last
 * message for that; 0: none was left.
 */
export const endRegistrations = Effect.fnUntraced(function* (user: UserToken, before: number) {
  const held = yield* (yield* Buckets).get("registrations", keys.registrationCounts(user))
  const left = registeredSince(held?.value ?? noCounts, user).filter((since) => since < before)
  const at = yield* Clock.currentTimeMillis
  const ends = yield* Effect.forEach(left, (since) => endRegistration(since, before, at), {
    concurrency: subjectsAtOnce
  })
  return Math.max(0, ...ends)
})

const endRegistration = Effect.fnUntraced(function* (since: number, before: number, at: number) {
  const log = yield* EventLog
  const began = yield* log.at("log", since)
  if (began?.message.type !== "registration.put") return 0
  const { message, subject } = began
  const last = yield* log.last("log", subject)
  // The user has left meanwhile, and may have come back: that registration must stay.
  if (last?.message.type !== "registration.put" || last.seq >= before) return 0
  const body = { user: message.user, at }
  const end = { subject, type: "registration.delete", body, expect: last.seq } as const
  return yield* log.append("log", end).pipe(
    Effect.map(({ seq }) => seq),
    Effect.catchTag("AppendConflict", () => Effect.succeed(0))
  )
})

/** All that is known of a message that is to be deleted. */
type Over = Pick<Stored, "seq" | "subject">

const messagesOver = Effect.fnUntraced(function* ({ log }: Sets, { command, user }: Erasure) {
  const found: Array<Over & { readonly isBack: boolean }> = []
  const ids = new Set<string>()
  const own = [subjects.subscription(user), filters.registrationsOf(user)]
  yield* log.replay("log", own, ({ message, seq, subject }) => {
    // Not the message: of a user who stored much, all would be in memory until the letters end.
    found.push({ seq, subject, isBack: comesBack(message) })
    if ("user" in message) ids.add(message.user)
  })
  const bySubject = Map.groupBy(found, ({ subject }) => subject)
  return { ids, over: [...bySubject.values()].flatMap((all) => overIn(all, command)) }
})

/** Has the entries of registrations removed that are over, and waits until they are. */
const forgetEntries = Effect.fnUntraced(function* (sets: Sets, over: ReadonlyArray<Over>) {
  const entries = over.flatMap(({ subject }) => {
    const { channel, user } = parseRegistration(subject) ?? {}
    return channel === undefined || user === undefined ? [] : keys.registration(channel, user)
  })
  for (const key of entries) sets.erased.add(key)
  yield* until(() => !entries.some((key) => sets.erased.has(key)))
})

/**
 * Deletes messages, and first the facts about them, which a later term would not find any more. The
 * oldest of a subject goes first: the end of a registration without its begin counts nothing.
 */
const deleteOver = Effect.fnUntraced(function* ({ log }: Sets, over: ReadonlyArray<Over>) {
  const atOnce = { concurrency: subjectsAtOnce, discard: true } as const
  const facts = yield* log.lastOf("log", over.flatMap(subjectsAbout))
  yield* Effect.forEach(facts, ({ seq }) => log.remove(seq), atOnce)
  yield* Effect.forEach(
    Map.groupBy(over, ({ subject }) => subject).values(),
    (all) => Effect.forEach(all, ({ seq }) => log.remove(seq), { discard: true }),
    atOnce
  )
})

/** Records that a user was erased. The command goes last: until then a later term goes on. */
const record = Effect.fnUntraced(function* ({ log }: Sets, { by, command, user }: Erasure) {
  const at = yield* Clock.currentTimeMillis
  const body = { command, at, ...(by === undefined ? {} : { by }) }
  const last = (yield* log.last("log", subjects.erased(user)))?.message
  const isRecorded = last?.type === "user.erased" && last.command === command
  if (!isRecorded)
    yield* log.append("log", { subject: subjects.erased(user), type: "user.erased", body })
  const asked = yield* log.following("log", subjects.erase(user), { from: 1, limit: readAtOnce })
  for (const { seq } of asked) if (seq <= command) yield* log.remove(seq)
})
