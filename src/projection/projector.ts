// LOG -> subscriptions, registrations, channels: folds commands in order and says how far it is.
import { Clock, Effect, Layer } from "effect"
import type { Message } from "#domain/messages.ts"
import { type ChannelRegistrations, emptyChannel, evolveChannel, evolveRegistration, type Registration } from "#domain/registration.ts"
import { emptyList, evolveList, type SubscriptionCommand, type SubscriptionList } from "#domain/subscription.ts"
import type { LogUnavailable } from "#log/errors.ts"
import { Followers } from "#log/follow.ts"
import { Log, type Stored } from "#log/log.ts"
import { Watermark } from "#log/watermark.ts"
import { makeWorkingSet } from "#log/working-set.ts"
import { keys } from "#streams/buckets.ts"
import { commandKind, parseRegistration, parseSubscription, subjects } from "#streams/subjects.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"

type Step =
  | {
      readonly kind: "list"
      readonly key: string
      readonly seq: number
      readonly command: SubscriptionCommand
    }
  | {
      readonly kind: "registration"
      readonly key: string
      readonly channel: string
      readonly seq: number
      readonly command: Message<"registration.put/1" | "registration.delete/1">
    }
  | { readonly kind: "pass" }
  | { readonly kind: "rejected"; readonly reason: string }

const listStep = (user: UserToken | undefined, { message, seq }: Stored): Step => {
  if (message.type === "malformed") return { kind: "rejected", reason: message.reason }
  if (user === undefined || !message.type.startsWith("subscription.")) return { kind: "rejected", reason: "type and subject do not fit" }
  return { kind: "list", key: keys.subscriptions(user), seq, command: message as Extract<Step, { kind: "list" }>["command"] }
}

const registrationStep = (place: { channel: ChannelToken; user: UserToken } | undefined, { message, seq }: Stored): Step => {
  if (message.type === "malformed") return { kind: "rejected", reason: message.reason }
  if (place === undefined || !message.type.startsWith("registration.")) return { kind: "rejected", reason: "type and subject do not fit" }
  const { channel, user } = place
  return {
    kind: "registration",
    key: keys.registration(channel, user),
    channel: keys.channelRegistrations(channel),
    seq,
    command: message as Extract<Step, { kind: "registration" }>["command"]
  }
}

const stepOf = (stored: Stored): Step => {
  const kind = commandKind(stored.subject)
  if (kind === "subscription") return listStep(parseSubscription(stored.subject), stored)
  if (kind === "registration") return registrationStep(parseRegistration(stored.subject), stored)
  return { kind: "pass" }
}

/**
 * Cuts a batch before the second command of one registration: its value remembers one change only, and that is what the channel's
 * count is mended from when a crash comes between the two writes.
 */
const cut = (steps: ReadonlyArray<Step>): ReadonlyArray<ReadonlyArray<Step>> => {
  const parts: Array<Array<Step>> = [[]]
  let seen = new Set<string>()
  for (const step of steps) {
    if (step.kind === "registration" && seen.has(step.key)) {
      parts.push([])
      seen = new Set()
    }
    if (step.kind === "registration") seen.add(step.key)
    parts.at(-1)!.push(step)
  }
  return parts
}

export const start = Effect.fnUntraced(function* (from: number) {
  const log = yield* Log
  const watermark = yield* Watermark
  const lists = yield* makeWorkingSet<SubscriptionList>("subscriptions")
  const registrations = yield* makeWorkingSet<Registration>("registrations")
  const channels = yield* makeWorkingSet<ChannelRegistrations>("channels")
  const floor = () => ({ subscriptions: lists.revision(), registrations: registrations.revision() })

  const fold = (step: Step): void => {
    if (step.kind === "list") lists.set(step.key, evolveList(lists.get(step.key) ?? emptyList, step.command, step.seq))
    if (step.kind !== "registration") return
    const { channel, command, key, seq } = step
    const registration = evolveRegistration(registrations.get(key), command, seq)
    registrations.set(key, registration)
    channels.set(channel, evolveChannel(channels.get(channel) ?? emptyChannel, registration, command, seq))
  }

  const applyPart = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
    const places = steps.filter((step) => step.kind === "registration")
    yield* Effect.all(
      [
        lists.load(steps.flatMap((step) => (step.kind === "list" ? [step.key] : []))),
        registrations.load(places.map(({ key }) => key)),
        channels.load(places.map(({ channel }) => channel))
      ],
      { concurrency: "unbounded", discard: true }
    )
    steps.forEach(fold)
    yield* Effect.all([lists.flush, registrations.flush], { concurrency: "unbounded", discard: true })
    // After the registrations, never before: see cut.
    yield* channels.flush
  })

  const reject = Effect.fnUntraced(function* ({ seq, subject }: Stored, reason: string) {
    const body = { broadcast: seq, subject, reason, at: yield* Clock.currentTimeMillis }
    yield* log
      .append("log", { subject: subjects.rejected(seq), type: "broadcast.rejected/1", body, expect: 0 })
      .pipe(Effect.catchTag("AppendConflict", () => Effect.void))
    yield* Effect.logWarning("a command in the log was refused", { seq, reason })
  })

  const apply = Effect.fnUntraced(function* (batch: ReadonlyArray<Stored>): Effect.fn.Return<void, LogUnavailable> {
    const steps = batch.map(stepOf)
    for (const part of cut(steps)) yield* applyPart(part)
    for (const [i, step] of steps.entries()) if (step.kind === "rejected") yield* reject(batch[i]!, step.reason)
    yield* watermark.announce({ log: batch.at(-1)!.seq, floor: floor() })
  })

  yield* watermark.announce({ log: from, floor: floor() })
  return { from, apply }
})

/** Runs the projector for as long as the layer lives. */
export const projectionLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const followers = yield* Followers
    yield* Effect.forkScoped(followers.follow("projector", start))
  })
)
