// Folds one step into the values in memory.
import { foldPublishers, noPublishers, passOverInPublishers } from "#domain/publisher.ts"
import {
  emptyChannel,
  evolveChannel,
  evolveRegistration,
  passOverInRegistration
} from "#domain/registration.ts"
import { emptyList, foldList, passOverInList } from "#domain/subscription.ts"
import type { Sets } from "./sets.ts"
import type { Step } from "./step.ts"

type Of<K extends Step["kind"]> = Extract<Step, { readonly kind: K }>

const foldIntoList = ({ lists }: Sets, { command, key, stored: { seq } }: Of<"list">) => {
  const before = lists.get(key) ?? emptyList
  const { list, reason } =
    command.type === "malformed"
      ? { list: passOverInList(before, seq), reason: command.reason }
      : foldList(before, command, seq)
  lists.set(key, list, seq)
  return reason
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

const foldIntoRegistration = (sets: Sets, step: Of<"registration">) => {
  const { channels, held, registrations } = sets
  const { channel, command, key } = step
  const { seq } = step.stored
  const before = registrations.get(key)
  // A registration remembers one change, and a crash mends the count from it. The count that is
  // stored lacks this registration's former change: writing the next one would lose that.
  if (channels.unstoredSince(channel) <= (before?.seq ?? 0) && !held.has(key)) {
    held.set(key, channel)
    registrations.hold(key)
  }
  if (command.type === "malformed") {
    registrations.set(key, passOverInRegistration(before, seq), seq)
    return command.reason
  }
  const registration = evolveRegistration(before, command, seq)
  registrations.set(key, registration, seq)
  channels.set(
    channel,
    evolveChannel(channels.get(channel) ?? emptyChannel, registration, command, seq),
    seq
  )
  return undefined
}

/** Returns why the command is refused, if so. */
export const fold = (sets: Sets, step: Step): string | undefined => {
  switch (step.kind) {
    case "pass":
      return undefined
    case "nowhere":
      return step.reason
    case "list":
      return foldIntoList(sets, step)
    case "publishers":
      return foldIntoPublishers(sets, step)
    case "registration":
      return foldIntoRegistration(sets, step)
  }
}

/** Keeps the value of a step from being written, until what is returned is called. */
export const hold = (sets: Sets, step: Step): (() => void) => {
  if (step.kind === "pass" || step.kind === "nowhere") return () => {}
  const set =
    step.kind === "list"
      ? sets.lists
      : step.kind === "publishers"
        ? sets.publishers
        : sets.registrations
  set.hold(step.key)
  return () => set.release(step.key)
}
