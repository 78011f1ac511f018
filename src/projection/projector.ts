// LOG -> subscriptions, registrations, channels, permissions: folds commands in order and says how far it is.
import { Clock, Effect, Layer } from "effect"
import {
  foldPublishers,
  noPublishers,
  type Publishers,
  passOverInPublishers
} from "#domain/publisher.ts"
import {
  type ChannelRegistrations,
  emptyChannel,
  evolveChannel,
  evolveRegistration,
  passOverInRegistration,
  type Registration
} from "#domain/registration.ts"
import { emptyList, foldList, passOverInList, type SubscriptionList } from "#domain/subscription.ts"
import type { LogUnavailable } from "#log/errors.ts"
import { Followers } from "#log/follow.ts"
import { Log } from "#log/log.ts"
import type { Stored } from "#log/stored.ts"
import { Watermark } from "#log/watermark.ts"
import { makeWorkingSet } from "#log/working-set.ts"
import { subjects } from "#streams/subjects.ts"
import { makeSeldom } from "#telemetry/seldom.ts"
import { cut, type Step, stepOf } from "./step.ts"

/** Facts written at once; without them a flood of garbage would hold up everybody's writes for a round trip each. */
const rejectConcurrency = 64

export const start = Effect.fnUntraced(function* (from: number) {
  const log = yield* Log
  const watermark = yield* Watermark
  const lists = yield* makeWorkingSet<SubscriptionList>("subscriptions")
  const registrations = yield* makeWorkingSet<Registration>("registrations")
  const channels = yield* makeWorkingSet<ChannelRegistrations>("channels")
  const publishers = yield* makeWorkingSet<Publishers>("permissions")
  const floor = () => ({ subscriptions: lists.revision(), registrations: registrations.revision() })
  const warn = makeSeldom("commands in the log were refused")

  /** Returns why the command is not obeyed, if so. */
  const fold = (step: Step): string | undefined => {
    const { seq } = step.stored
    if (step.kind === "pass") return undefined
    if (step.kind === "nowhere") return step.reason
    const { key } = step
    if (step.kind === "list") {
      const before = lists.get(key) ?? emptyList
      const { list, reason } =
        step.command.type === "malformed"
          ? { list: passOverInList(before, seq), reason: step.command.reason }
          : foldList(before, step.command, seq)
      lists.set(key, list)
      return reason
    }
    if (step.kind === "publishers") {
      const before = publishers.get(key) ?? noPublishers
      const folded =
        step.command.type === "malformed"
          ? { publishers: passOverInPublishers(before, seq), reason: step.command.reason }
          : foldPublishers(before, step.command, seq)
      publishers.set(key, folded.publishers)
      return folded.reason
    }
    if (step.command.type === "malformed") {
      registrations.set(key, passOverInRegistration(registrations.get(key), seq))
      return step.command.reason
    }
    const registration = evolveRegistration(registrations.get(key), step.command, seq)
    registrations.set(key, registration)
    channels.set(
      step.channel,
      evolveChannel(channels.get(step.channel) ?? emptyChannel, registration, step.command, seq)
    )
    return undefined
  }

  const reject = Effect.fnUntraced(function* ({ seq, subject }: Stored, reason: string) {
    const body = { broadcast: seq, subject, reason, at: yield* Clock.currentTimeMillis }
    yield* log.once("log", { subject: subjects.rejected(seq), type: "broadcast.rejected/1", body })
    yield* warn({ seq, reason })
  })

  const applyPart = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
    const places = steps.filter((step) => step.kind === "registration")
    yield* Effect.all(
      [
        lists.load(steps.flatMap((step) => (step.kind === "list" ? [step.key] : []))),
        publishers.load(steps.flatMap((step) => (step.kind === "publishers" ? [step.key] : []))),
        registrations.load(places.map(({ key }) => key)),
        channels.load(places.map(({ channel }) => channel))
      ],
      { concurrency: "unbounded", discard: true }
    )
    const rejected = steps.flatMap((step) => {
      const reason = fold(step)
      return reason === undefined ? [] : [{ stored: step.stored, reason }]
    })
    // The facts go first: once a list is written, a command that did not fit cannot be told from one that was folded.
    yield* Effect.forEach(rejected, ({ reason, stored }) => reject(stored, reason), {
      concurrency: rejectConcurrency,
      discard: true
    })
    yield* Effect.all([lists.flush, registrations.flush, publishers.flush], {
      concurrency: "unbounded",
      discard: true
    })
    // After the registrations, never before: see cut.
    yield* channels.flush
  })

  const apply = Effect.fnUntraced(function* (
    batch: ReadonlyArray<Stored>
  ): Effect.fn.Return<void, LogUnavailable> {
    for (const part of cut(batch.map(stepOf))) yield* applyPart(part)
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
