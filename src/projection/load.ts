// Loads what the steps of a part change into the caches of the projector.
import * as Effect from "effect/Effect"
import { comesBack } from "#domain/erasure.ts"
import {
  evolveRegistration,
  passOverInRegistration,
  type Registration
} from "#domain/registration.ts"
import { emptyList, isBlank } from "#domain/subscription/subscription.ts"
import type { Facts } from "#nats/follower/facts.ts"
import type { WriteBackCache } from "#nats/kv/write-back-cache.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { type EntryKey, keys } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import { loadErasure } from "./erase.ts"
import { formerOwner, removedEndpoints } from "./owners.ts"
import type { Sets } from "./sets.ts"
import type { Step } from "./step.ts"

/** Bytes that the steps of one part may read. A list has up to 1 MiB. */
const partBytesMax = 2 * 1024 ** 2
/** Steps that read at once: at most 32 MiB of lists. */
const loadConcurrency = 32

/** Whether the message is the first of its subject. */
const isFirst = ({ header }: Stored): boolean =>
  header("Nats-Expected-Last-Subject-Sequence") === "0" &&
  // With this header, the expected sequence is that of another subject.
  header("Nats-Expected-Last-Subject-Sequence-Subject") === undefined

/** Skips the read if the message is the first of its subject: the bucket cannot have the key. */
const loadOwn = <K extends string, V>(
  set: WriteBackCache<K, V>,
  { foldedUpTo }: Sets,
  key: K,
  stored: Stored
) => {
  if (stored.seq <= foldedUpTo || !isFirst(stored)) return set.load([key])
  set.loadAbsent(key)
  return Effect.succeed(0)
}

/**
 * Loads a registration. An earlier term that was killed may have removed the entry, and not yet
 * written the next one; a term that has lost its lease may do so at any time. Then folds what LOG
 * has of the registration: only the entry of one that ended may be missing otherwise.
 */
const loadReplaced = Effect.fnUntraced(function* (
  sets: Sets,
  facts: Facts,
  key: EntryKey<"registration">,
  stored: Stored
) {
  const { registrations } = sets
  const bytes = yield* loadOwn(registrations, sets, key, stored)
  const isEarlier = stored.seq <= sets.foldedUpTo
  const ends = stored.message.type === "registration.delete"
  const mayBeMissing = sets.from > 0 && (isEarlier || ends) && !isFirst(stored)
  if (!mayBeMissing || registrations.get(key) !== undefined) return bytes
  const before = yield* registrationBefore(sets, facts, stored)
  if (before !== undefined) registrations.assume(key, before)
  return bytes
})

/** The registration before a command, from LOG. */
const registrationBefore = Effect.fnUntraced(function* (
  { log }: Sets,
  facts: Facts,
  { seq, subject }: Stored
) {
  const earlier: Array<Stored> = []
  yield* log.replay("log", [subject], (each) => void (each.seq < seq && earlier.push(each)))
  let registration: Registration | undefined
  for (const { message, seq: at } of earlier) {
    const isCommand = message.type === "registration.put" || message.type === "registration.delete"
    registration =
      isCommand && !(yield* facts.isRecorded(subjects.rejected(at)))
        ? evolveRegistration(registration, message, at)
        : passOverInRegistration(registration, at)
  }
  return registration
})

/**
 * Loads the registration and its counts. If an earlier term stored the counts and not the
 * registration, loads also whether that term rejected the put.
 */
const loadRegistration = Effect.fnUntraced(function* (
  sets: Sets,
  facts: Facts,
  { begin, channel, command, counts, key, stored }: Extract<Step, { kind: "registration" }>
) {
  const { seq } = stored
  const sizes = yield* Effect.all(
    [
      loadReplaced(sets, facts, key, stored),
      sets.channels.load([channel]),
      sets.begins.load([begin]),
      sets.counts.load([counts])
    ],
    { concurrency: "unbounded" }
  )
  const isCounted = (sets.counts.get(counts)?.seq ?? 0) >= seq
  const isPut = command.type === "registration.put"
  if (isCounted && isPut && (sets.registrations.get(key)?.seq ?? 0) < seq) {
    if (yield* facts.isRecorded(subjects.rejected(seq))) sets.refused.add(seq)
  }
  return sizes.reduce((sum, size) => sum + size, 0)
})

/**
 * Loads a list and the owners of the endpoints that its command is about; for a put also the list
 * of an earlier owner, and whether an earlier term rejected it.
 */
const loadList = Effect.fnUntraced(function* (
  sets: Sets,
  facts: Facts,
  step: Extract<Step, { kind: "list" }>
) {
  const { lists, owners, refused } = sets
  const { hash, key, stored } = step
  const own = yield* loadOwn(lists, sets, key, stored)
  const endpoints = [...removedEndpoints(sets, step), ...(hash === undefined ? [] : [hash])]
  const pages = yield* owners.load(endpoints.map(keys.endpointOwners))
  const former = formerOwner(sets, step)
  const others = former === undefined ? 0 : yield* lists.load([keys.subscriptions(former)])
  if (yield* isAfterErasure(sets, step)) sets.late.add(stored.seq)
  const isEarlier = hash !== undefined && stored.seq <= sets.foldedUpTo
  if (isEarlier && (yield* facts.isRecorded(subjects.rejected(stored.seq)))) refused.add(stored.seq)
  return own + pages + others
})

/**
 * Whether a put that restores or renews finds nothing of its user because of an erasure. A rebuild
 * knows it from LOG, which has the command of an erasure until that is done.
 */
const isAfterErasure = Effect.fnUntraced(function* (
  { isLive, lists, log }: Sets,
  { command: given, key, stored: { seq }, user }: Extract<Step, { kind: "list" }>
) {
  const isPut = given.type === "subscription.put" && !comesBack(given)
  if (!isLive || !isPut || !isBlank(lists.get(key) ?? emptyList)) return false
  // In this order: the fact is stored before the command is removed.
  const command = yield* log.last("log", subjects.erase(user))
  const fact = yield* log.last("log", subjects.erased(user))
  if (command !== undefined && command.seq < seq) return true
  const { message, seq: at = 0 } = fact ?? {}
  return message?.type === "user.erased" && message.command < seq && seq < at
})

const loadStep = (sets: Sets, facts: Facts, step: Step) => {
  if (step.kind === "list") return loadList(sets, facts, step)
  if (step.kind === "publishers") return sets.publishers.load([step.key])
  if (step.kind === "token") return sets.tokens.load([step.key])
  if (step.kind === "draft") return sets.drafts.load([step.key])
  if (step.kind === "registration") return loadRegistration(sets, facts, step)
  if (step.kind === "erase") return loadErasure(sets, step)
  if (step.kind === "begun")
    return Effect.zipWith(
      sets.channels.load([step.key]),
      sets.begins.load([step.begin]),
      (a, b) => a + b
    )
  return Effect.succeed(0)
}

/**
 * Loads the pages of the endpoints that puts store: at most 256 pages of 122 KB. A rebuild
 * reads pages from its own file.
 */
const loadPages = ({ isLive, owners }: Sets, steps: ReadonlyArray<Step>) =>
  isLive
    ? owners.loadTogether(
        steps.flatMap((step) =>
          step.kind === "list" && step.hash !== undefined ? keys.endpointOwners(step.hash) : []
        )
      )
    : Effect.void

/**
 * Loads the values of as many steps as one part may read, from the first on. Returns the number of
 * these steps.
 */
export const load = Effect.fnUntraced(function* (
  sets: Sets,
  facts: Facts,
  steps: ReadonlyArray<Step>
) {
  yield* loadPages(sets, steps)
  let read = 0
  let loaded = steps.length
  const seen = new Set<string>()
  const one = (step: Step, n: number) => {
    const key = "key" in step ? `${step.kind} ${step.key}` : ""
    // The endpoints of each command of a list differ.
    if (step.kind !== "list" && seen.has(key)) return Effect.void
    if (read > partBytesMax) {
      loaded = Math.min(loaded, n)
      return Effect.void
    }
    seen.add(key)
    return Effect.map(loadStep(sets, facts, step), (bytes) => {
      read += bytes
    })
  }
  yield* Effect.forEach(steps, one, { concurrency: loadConcurrency, discard: true })
  return loaded
})
