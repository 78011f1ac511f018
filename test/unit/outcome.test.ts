// The counts of a broadcast: they add up at every step, in any order of the outcomes of shards and
// retries.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  emptyPushes,
  evolveProgress,
  evolvePushes,
  type Fate,
  type Outcome,
  type Plan,
  type Progress,
  type PushResult,
  startProgress,
  waiting
} from "#domain/outcome.ts"
import type { UnknownReason } from "#domain/reason.ts"

const plan = (shards: number): Plan => ({
  broadcast: 9,
  depth: shards > 1 ? 1 : 0,
  shards,
  floor: { subscriptions: 1, registrations: 1 },
  acceptedAt: 1_000,
  expiresAt: 61_000,
  at: 1_005
})

const result = (subscription: string, fate: Fate): PushResult => ({
  user: "u",
  subscription,
  fate,
  reason: "because" as UnknownReason,
  attempt: 1,
  millis: 5,
  at: 1_010
})

const outcome = (
  pushes: number,
  fates: ReadonlyArray<Fate>,
  final: boolean,
  at = 1_010
): Outcome => ({
  broadcast: 9,
  pushes,
  results: fates.map((fate, i) => result(`s${i}`, fate)),
  final,
  at
})

describe("the progress of a broadcast", () => {
  const started = startProgress(plan(2), 3)

  it("begins with nothing accepted and carries what its plan says", () => {
    const { acceptedAt, broadcast, expiresAt } = plan(2)
    assert.deepInclude(started, {
      broadcast,
      acceptedAt,
      expiresAt,
      shards: 2,
      shardsDone: 0,
      seq: 3,
      lastModified: 1_005
    })
    assert.deepInclude(started, {
      accepted: 0,
      delivered: 0,
      retrying: 0,
      gone: 0,
      dead: 0,
      expired: 0,
      finished: false
    })
    assert.strictEqual(waiting(started), 0)
  })

  it("is finished at once when nobody is registered", () => {
    assert.isTrue(startProgress(plan(0), 3).finished)
  })

  it("shows the pushes of a shard as waiting until they have a fate", () => {
    const first = evolveProgress(started, outcome(5, ["delivered", "gone"], false), "shard", 4)
    assert.deepInclude(first, {
      accepted: 5,
      delivered: 1,
      gone: 1,
      shardsDone: 0,
      seq: 4,
      lastModified: 1_010
    })
    assert.strictEqual(waiting(first), 3)
    const second = evolveProgress(
      first,
      outcome(0, ["dead", "expired", "retrying"], true),
      "shard",
      5
    )
    assert.deepInclude(second, {
      accepted: 5,
      dead: 1,
      expired: 1,
      retrying: 1,
      shardsDone: 1,
      finished: false
    })
    assert.strictEqual(waiting(second), 0)
  })

  it("takes back pushes that turned out not to be there", () => {
    const first = evolveProgress(started, outcome(5, ["delivered"], false), "shard", 4)
    assert.strictEqual(evolveProgress(first, outcome(-4, [], true), "shard", 5).accepted, 1)
  })

  it("moves a retried push from retrying to its outcome, and keeps the number of shards", () => {
    const first = evolveProgress(started, outcome(2, ["retrying", "retrying"], true), "shard", 4)
    const again = evolveProgress(first, outcome(0, ["retrying"], false), "push", 5)
    assert.deepInclude(again, { retrying: 2, accepted: 2, shardsDone: 1 })
    const done = evolveProgress(again, outcome(0, ["delivered"], true), "push", 6)
    assert.deepInclude(done, { retrying: 1, delivered: 1, shardsDone: 1, finished: false })
  })

  it("is not finished while a push has no fate, although every shard says that it is done", () => {
    const first = evolveProgress(
      startProgress(plan(1), 3),
      outcome(3, ["delivered"], true),
      "shard",
      4
    )
    assert.deepInclude(first, { shardsDone: 1, finished: false })
  })

  it("never moves its timestamp back", () => {
    assert.strictEqual(
      evolveProgress(started, outcome(0, [], true, 7), "shard", 4).lastModified,
      1_005
    )
  })
})

/** A message of WORK about the broadcast, and the counts by outcome once it is counted. */
interface Event {
  readonly outcome: Outcome
  readonly of: "shard" | "push"
  readonly seq: number
}

const finals = ["delivered", "gone", "dead", "expired"] as const
/** A push: how often it is tried again, and how it ends. */
const push = fc.record({ retries: fc.integer({ min: 0, max: 3 }), end: fc.constantFrom(...finals) })
const shard = fc.record({
  pushes: fc.array(push, { maxLength: 6 }),
  chunk: fc.integer({ min: 1, max: 6 })
})
type Shard = typeof shard extends fc.Arbitrary<infer A> ? A : never

/**
 * The messages of each shard and each retried push in a possible order; `choices` picks among those
 * that can come next.
 */
const interleave = (
  shards: ReadonlyArray<Shard>,
  choices: ReadonlyArray<number>
): ReadonlyArray<Event> => {
  type Source = {
    readonly of: Event["of"]
    readonly next: () => { readonly outcome: Outcome; readonly more: boolean }
  }
  const ready: Array<Source> = []
  const retry = (subscription: string, { end, retries }: Shard["pushes"][number]): Source => {
    let left = retries
    return {
      of: "push",
      next: () => {
        left -= 1
        const fate = left === 0 ? end : "retrying"
        return {
          outcome: {
            broadcast: 9,
            pushes: 0,
            results: [result(subscription, fate)],
            final: left === 0,
            at: 2_000
          },
          more: left > 0
        }
      }
    }
  }
  shards.forEach(({ chunk, pushes }, n) => {
    let sent = 0
    ready.push({
      of: "shard",
      next: () => {
        const declared = sent === 0 ? pushes.length : 0
        const part = pushes.slice(sent, sent + chunk)
        const results = part.map(({ end, retries }, i) =>
          result(`${n}.${sent + i}`, retries > 0 ? "retrying" : end)
        )
        part.forEach((each, i) => {
          if (each.retries > 0) ready.push(retry(`${n}.${sent + i}`, each))
        })
        sent += part.length
        const more = sent < pushes.length
        return {
          outcome: { broadcast: 9, pushes: declared, results, final: !more, at: 2_000 },
          more
        }
      }
    })
  })
  const events: Array<Event> = []
  while (ready.length > 0) {
    const at = (choices[events.length % choices.length] ?? 0) % ready.length
    const source = ready[at]!
    const { more, outcome } = source.next()
    if (!more) ready.splice(ready.indexOf(source), 1)
    events.push({ outcome, of: source.of, seq: 10 + 2 * events.length })
  }
  return events
}

const broadcasts = fc
  .tuple(
    fc.array(shard, { minLength: 1, maxLength: 4 }),
    fc.array(fc.nat(50), { minLength: 1, maxLength: 20 })
  )
  .map(([shards, choices]) => ({ shards, events: interleave(shards, choices) }))

const fold = (progress: Progress, events: ReadonlyArray<Event>) =>
  events.reduce((state, { of, outcome, seq }) => evolveProgress(state, outcome, of, seq), progress)

describe("any interleaving of the outcomes of shards and of retries", () => {
  it("adds up at every step: accepted equals the sum of the six other counts", () => {
    fc.assert(
      fc.property(broadcasts, ({ events, shards }) => {
        let progress = startProgress(plan(shards.length), 5)
        let accepted = 0
        const fates = new Map<string, Fate>()
        for (const event of events) {
          progress = fold(progress, [event])
          accepted += event.outcome.pushes
          for (const { fate, subscription } of event.outcome.results) fates.set(subscription, fate)
          const count = (fate: Fate) => [...fates.values()].filter((each) => each === fate).length
          for (const fate of [...finals, "retrying"] as const)
            assert.strictEqual(progress[fate], count(fate), fate)
          assert.strictEqual(progress.accepted, accepted)
          assert.strictEqual(waiting(progress), accepted - fates.size)
          const { dead, delivered, expired, gone, retrying } = progress
          assert.strictEqual(
            progress.accepted,
            delivered + waiting(progress) + retrying + expired + dead + gone
          )
        }
      })
    )
  })

  it("is finished exactly when the last push has a final fate", () => {
    fc.assert(
      fc.property(broadcasts, ({ events, shards }) => {
        let progress = startProgress(plan(shards.length), 5)
        for (const [i, event] of events.entries()) {
          assert.isFalse(progress.finished)
          progress = fold(progress, [event])
          assert.strictEqual(progress.finished, i === events.length - 1)
        }
        assert.strictEqual(progress.accepted, shards.flatMap(({ pushes }) => pushes).length)
        assert.strictEqual(progress.shardsDone, shards.length)
      })
    )
  })

  it("gives the same counts however much of it is delivered again", () => {
    fc.assert(
      fc.property(broadcasts, fc.nat(60), fc.nat(60), ({ events, shards }, a, b) => {
        const [from, to] = [Math.min(a, b), Math.max(a, b)]
        const start = startProgress(plan(shards.length), 5)
        const last = fold(start, events)
        assert.deepStrictEqual(fold(last, events.slice(from, to)), last)
        assert.deepStrictEqual(
          fold(fold(fold(start, events.slice(0, to)), events.slice(from, to)), events.slice(to)),
          last
        )
      })
    )
  })

  it("adds to its channel the delivered pushes and no others, once", () => {
    fc.assert(
      fc.property(broadcasts, ({ events }) => {
        let pushes = emptyPushes
        let delivered = 0
        for (const { outcome, seq } of events) {
          const before = pushes
          pushes = evolvePushes(pushes, outcome, seq)
          const more = outcome.results.filter(({ fate }) => fate === "delivered").length
          delivered += more
          assert.strictEqual(pushes.pushes, delivered)
          assert.strictEqual(pushes.seq, seq)
          assert.strictEqual(pushes.lastModified, more === 0 ? before.lastModified : outcome.at)
          assert.strictEqual(evolvePushes(pushes, outcome, seq), pushes)
        }
      })
    )
  })
})
