// Applies one step to the values in memory.
import { foldAccessToken } from "#domain/access-token.ts"
import { comesBack } from "#domain/erasure.ts"
import { foldPublishers, noPublishers, passOverInPublishers } from "#domain/publisher.ts"
import {
  countAt,
  emptyChannel,
  evolveChannel,
  evolveCounts,
  foldRegistration,
  isBegun,
  noCounts,
  passOverInRegistration,
  type Registration,
  type RegistrationCommand,
  sharedIsFull,
  withBegin
} from "#domain/registration.ts"
import type { Marks } from "#domain/subscription/command.ts"
import { marksBy, renewsMoved, withMarks } from "#domain/subscription/owners.ts"
import {
  emptyList,
  foldList,
  isBlank,
  passOverInList,
  type SubscriptionList
} from "#domain/subscription/subscription.ts"
import type { WriteBackCache } from "#nats/kv/write-back-cache.ts"
import { keys } from "#streams/buckets.ts"
import { foldIntoDrafts, note } from "./drafts.ts"
import { foldErasure } from "./erase.ts"
import {
  formerOwner,
  isPageFull,
  noteOwners,
  ownedByAnother,
  removedEndpoints,
  take,
  takenBy
} from "./owners.ts"
import { countedSince, noteUnused, type Sets } from "./sets.ts"
import type { Step } from "./step.ts"

type Of<K extends Step["kind"]> = Extract<Step, { readonly kind: K }>

/** The reason to reject a command whatever its user's list holds; undefined: there is none. */
const refusalOf = (
  sets: Sets,
  step: Of<"list">,
  before: SubscriptionList,
  taken: ReturnType<typeof takenBy>
): string | undefined => {
  if (step.command.type === "malformed") return step.command.reason
  const { seq } = step.stored
  const isOwned = taken?.isAllowed === false || renewsMoved(before, step.command, seq)
  if (sets.refused.has(seq) || isOwned) return ownedByAnother
  return isPageFull(sets, step) ? sharedIsFull : undefined
}

/**
 * Whether a command of a user of whom nothing is known was decided before an erasure, or is a fact
 * that a worker appended since. A history may begin with a put that restores or renews, too.
 */
const isLate = ({ emptied, late }: Sets, { command, key, stored: { seq } }: Of<"list">): boolean =>
  command.type !== "subscription.put" ||
  (!comesBack(command) && (emptied.has(key) || late.has(seq)))

const foldIntoList = (sets: Sets, step: Of<"list">): Fact | undefined => {
  const { lists } = sets
  const { command, key } = step
  const { seq } = step.stored
  const before = withMarks(lists.get(key) ?? emptyList, sets.marks.get(seq))
  // Nothing of an erased user must be left.
  if (isBlank(before) && command.type !== "malformed" && isLate(sets, step)) {
    note(sets, { seq, after: seq })
    return undefined
  }
  const removed = removedEndpoints(sets, step)
  const taken = takenBy(sets, step)
  const refusal = refusalOf(sets, step, before, taken)
  const { list, reason } =
    command.type === "malformed" || refusal !== undefined
      ? { list: passOverInList(before, seq), reason: refusal }
      : foldList(before, command, seq)
  lists.set(key, list, seq)
  if (reason !== undefined) return { reason }
  if (taken !== undefined) take(sets, taken)
  const marks = command.type === "malformed" ? [] : marksBy(before, command, list)
  noteOwners(sets, step, removed, list, marks.length > 0)
  return marks.length === 0 ? undefined : { marks }
}

const foldIntoPublishers = (
  { publishers: set }: Sets,
  { command, key, stored: { seq } }: Of<"publishers">
) => {
  const before = set.get(key) ?? noPublishers
  const { publishers, reason } =
    command.type === "malformed"
      ? { publishers: passOverInPublishers(before, seq), reason: command.reason }
      : foldPublishers(before, command, seq)
  set.set(key, publishers, seq)
  return reason
}

const foldIntoToken = ({ tokens }: Sets, { command, key, name, stored: { seq } }: Of<"token">) => {
  const { reason, token } = foldAccessToken(tokens.get(key), command, name, seq)
  if (token !== undefined) tokens.set(key, token, seq)
  return reason
}

const foldIntoRegistration = (sets: Sets, step: Of<"registration">) => {
  const { counts, blocked, refused, registrations } = sets
  const { command, key, user } = step
  const { seq } = step.stored
  const before = registrations.get(key)
  const count = counts.get(step.counts) ?? noCounts
  // A registration has its last change only, from which its counts are repaired after a crash.
  // While the stored counts lack the former change, do not write the registration with the next
  // change.
  if (countedSince(sets, step) <= (before?.seq ?? 0) && !blocked.has(key)) {
    blocked.set(key, step)
    registrations.block(key)
  }
  const { reason, registration } =
    command.type === "malformed"
      ? { registration: passOverInRegistration(before, seq), reason: command.reason }
      : foldRegistration(before, command, seq, countAt(count, user, seq, refused.has(seq)))
  // The former entry is removed before the next one is written. A key may be removed later, or
  // lack its next entry after a crash: a killed nats-server 2.15 then brings back an overwritten
  // entry.
  if (registration !== before) registrations.replace(key, registration, seq)
  counts.set(step.counts, evolveCounts(count, user, registration, seq), seq)
  if (command.type !== "malformed") foldIntoChannel(sets, step, command, registration)
  return reason
}

const foldIntoChannel = (
  sets: Sets,
  { begin: beginKey, channel, place, stored: { seq } }: Of<"registration">,
  command: RegistrationCommand,
  registration: Registration
) => {
  const { begins, channels } = sets
  const begin = begins.get(beginKey)
  const stored = channels.get(channel)
  const before = isBegun(stored, begin) ? stored : emptyChannel
  const next = evolveChannel(before, registration, command, seq)
  if (next === before) return
  channels.set(channel, next, seq)
  if (next.since !== begin?.since) begins.replace(beginKey, { v: 1, since: next.since }, seq)
  if (next.registrations === 0) noteUnused(sets, place)
}

const foldBegun = (
  { begins, channels }: Sets,
  { begin: beginKey, begun, key, stored: { seq } }: Of<"begun">
) => {
  const [stored, begin] = [channels.get(key), begins.get(beginKey)]
  if (!isBegun(stored, begin)) return
  const next = withBegin(stored, begun)
  channels.set(key, next, seq)
  if (next.since !== stored.since) begins.replace(beginKey, { v: 1, since: next.since }, seq)
}

/**
 * A fact that LOG must have before the value is written: why a command was rejected, or what was
 * another user's when it was folded.
 */
export type Fact = { readonly reason: string } | { readonly marks: Marks }

/** Folds a step, and returns the fact that LOG must have. */
export const fold = (sets: Sets, step: Step): Fact | undefined =>
  step.kind === "list" ? foldIntoList(sets, step) : rejectionOf(foldOther(sets, step))

const rejectionOf = (reason: string | undefined): Fact | undefined =>
  reason === undefined ? undefined : { reason }

/** Returns the reason if the command is rejected. */
const foldOther = (sets: Sets, step: Exclude<Step, Of<"list">>): string | undefined => {
  switch (step.kind) {
    case "pass":
      return undefined
    case "nowhere":
      return step.reason
    case "publishers":
      return foldIntoPublishers(sets, step)
    case "token":
      return foldIntoToken(sets, step)
    case "draft":
      foldIntoDrafts(sets, step)
      return undefined
    case "registration":
      return foldIntoRegistration(sets, step)
    case "begun":
      foldBegun(sets, step)
      return undefined
    case "erase":
      foldErasure(sets, step)
      return undefined
  }
}

const blockKey = <K extends string, V>(cache: WriteBackCache<K, V>, key: K) => {
  cache.block(key)
  return () => cache.unblock(key)
}

/**
 * Blocks the writes of the list of a put that LOG needs a fact about, the page of its endpoint, and
 * the list of the owner there. A later run decides on the put again while LOG lacks the fact: so it
 * needs the page and the owner's list as they were before later commands.
 */
const blockList = (sets: Sets, step: Of<"list">) => {
  const { hash, key } = step
  const owner = formerOwner(sets, step)
  const unblocks = [
    blockKey(sets.lists, key),
    ...(hash === undefined ? [] : [blockKey(sets.owners, keys.endpointOwners(hash))]),
    ...(owner === undefined ? [] : [blockKey(sets.lists, keys.subscriptions(owner))])
  ]
  return () => {
    for (const unblock of unblocks) unblock()
  }
}

/**
 * Defers the write of a step's value until the returned function is called. To be called before the
 * next step is folded.
 */
export const block = (sets: Sets, step: Step): (() => void) => {
  switch (step.kind) {
    case "list":
      return blockList(sets, step)
    case "publishers":
      return blockKey(sets.publishers, step.key)
    case "token":
      return blockKey(sets.tokens, step.key)
    case "registration": {
      const unblocks = [blockKey(sets.registrations, step.key), blockKey(sets.counts, step.counts)]
      return () => {
        for (const unblock of unblocks) unblock()
      }
    }
    default:
      return () => {}
  }
}
