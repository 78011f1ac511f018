// The counts of a broadcast add up in any order of the outcomes of shards and retries.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { deliveredOf, emptyPushes, evolvePushes, type Fate, type Outcome } from "#domain/outcome.ts"
import { evolveProgress, type Progress, startProgress, waiting } from "#domain/progress.ts"
import { plan, result } from "#test/outcome-messages.ts"

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
        let pushes = emptyPushes(5)
        let delivered = 0
        for (const { outcome, seq } of events) {
          const counted = { broadcast: 9, lastModified: outcome.at - 1 }
          const delta = deliveredOf(outcome, counted, seq)
          pushes = evolvePushes(pushes, delta)
          const more = outcome.results.filter(({ fate }) => fate === "delivered").length
          delivered += more
          assert.strictEqual(pushes.pushes, delivered)
          assert.strictEqual(pushes.seq, seq)
          assert.strictEqual(pushes.lastModified, outcome.at)
          assert.strictEqual(evolvePushes(pushes, delta), pushes)
          // A broadcast before the begin of the channel.
          const earlier = deliveredOf(outcome, { ...counted, broadcast: 4 }, seq + 1)
          assert.strictEqual(evolvePushes(pushes, earlier), pushes)
        }
      })
    )
  })
})
