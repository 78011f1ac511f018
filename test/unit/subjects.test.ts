// Builders and parsers of subjects: each parser reads what its builder writes, and the filters
// match.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { keys, userOfKey } from "#streams/buckets.ts"
import { log } from "#streams/log.ts"
import {
  commandKind,
  filters,
  parseBroadcast,
  parseOfBroadcast,
  parseRegistration,
  parseState,
  parseSubscription,
  subjects
} from "#streams/subjects.ts"
import { channelToken, originToken, shardPath, shardsAt, type UserToken } from "#streams/tokens.ts"
import { work } from "#streams/work.ts"

const base64url = fc.constantFrom(
  ..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
)
const user = fc
  .string({ unit: base64url, minLength: 22, maxLength: 22 })
  .map((token) => token as UserToken)
const channel = fc
  .string({ unit: "binary", minLength: 1, maxLength: 40 })
  .filter((id) => !id.includes("/"))
  .map(channelToken)
const broadcast = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })
const subscription = fc.string({
  unit: fc.constantFrom(..."0123456789abcdef"),
  minLength: 64,
  maxLength: 64
})
const shard = fc.constantFrom(...shardsAt(0), ...shardsAt(1), ...shardsAt(2))

/** Whether a NATS filter sees a subject. */
const sees = (filter: string, subject: string): boolean => {
  const [wanted, given] = [filter.split("."), subject.split(".")]
  return (
    wanted.every((token, i) =>
      token === ">" ? given.length > i : token === "*" ? i < given.length : token === given[i]
    ) &&
    (wanted.at(-1) === ">" || wanted.length === given.length)
  )
}

describe("a subject", () => {
  it("of a subscription command names its user", () => {
    fc.assert(
      fc.property(user, (user) => {
        const subject = subjects.subscription(user)
        assert.strictEqual(parseSubscription(subject), user)
        assert.strictEqual(commandKind(subject), "subscription")
        assert.isTrue(sees(filters.subscriptions, subject))
        for (const other of [
          `${subject}.more`,
          subject.replace("subscription", "registration"),
          "bellcast.cmd.subscription"
        ])
          assert.isUndefined(parseSubscription(other))
      })
    )
  })

  it("of a registration command names its channel and its user", () => {
    fc.assert(
      fc.property(channel, user, (channel, user) => {
        const subject = subjects.registration(channel, user)
        assert.deepStrictEqual(parseRegistration(subject), { channel, user })
        assert.strictEqual(commandKind(subject), "registration")
        assert.isTrue(sees(filters.registrations, subject))
        for (const other of [
          `${subject}.more`,
          subject.replace("registration", "subscription"),
          `bellcast.cmd.registration.${channel}`
        ])
          assert.isUndefined(parseRegistration(other))
      })
    )
  })

  it("of a change of a broadcast names the broadcast", () => {
    assert.strictEqual(parseState(subjects.state(17)), 17)
    assert.isTrue(sees(filters.states, subjects.state(17)))
    for (const other of ["", "0", "01", "1.2", "x", "99999999999999999999"])
      assert.isUndefined(parseState(`bellcast.evt.state.${other}`))
    assert.isUndefined(parseState("bellcast.cmd.state.17"))
  })

  it("of a broadcast names its publisher and its channel", () => {
    fc.assert(
      fc.property(fc.constantFrom("rest", "billing", "a=2Eb"), channel, (source, channel) => {
        const subject = subjects.broadcast(source, channel)
        assert.deepStrictEqual(parseBroadcast(subject), { source, channel })
        assert.strictEqual(commandKind(subject), "broadcast")
        assert.isTrue(sees(filters.broadcasts, subject))
        for (const other of [
          `${subject}.more`,
          `bellcast.cmd.broadcast.${source}`,
          `bellcast.cmd.broadcast.${source}.=zz`
        ])
          assert.isUndefined(parseBroadcast(other))
      })
    )
  })

  it("of a plan, an outcome or a dead letter names its channel, broadcast and kind", () => {
    fc.assert(
      fc.property(
        channel,
        broadcast,
        user,
        subscription,
        shard,
        (channel, broadcast, user, subscription, shard) => {
          const place = { channel, broadcast }
          assert.deepStrictEqual(parseOfBroadcast(subjects.plan(channel, broadcast)), {
            ...place,
            of: "shard"
          })
          assert.deepStrictEqual(
            parseOfBroadcast(subjects.shardOutcome(channel, broadcast, shard)),
            { ...place, of: "shard" }
          )
          assert.deepStrictEqual(
            parseOfBroadcast(subjects.pushOutcome(channel, broadcast, user, subscription)),
            { ...place, of: "push" }
          )
          const letter = parseOfBroadcast(
            subjects.deadLetter(channel, broadcast, user, subscription)
          )
          assert.deepInclude(letter, place)
        }
      )
    )
    for (const other of ["bellcast.plan", "bellcast.plan.news", "bellcast.plan.news.one"])
      assert.isUndefined(parseOfBroadcast(other), other)
  })

  it("of one broadcast is seen by the filters for it, and by those of no other", () => {
    fc.assert(
      fc.property(
        channel,
        broadcast,
        user,
        subscription,
        (channel, broadcast, user, subscription) => {
          const other = broadcast === 1 ? 2 : broadcast - 1
          const outcomes = [
            subjects.shardOutcome(channel, broadcast, "a.b"),
            subjects.pushOutcome(channel, broadcast, user, subscription)
          ]
          const pairs: ReadonlyArray<readonly [string, (broadcast: number) => string, string]> = [
            ...outcomes.map((subject) => [subject, filters.outcomesOf, filters.outcomes] as const),
            [subjects.plan(channel, broadcast), filters.planOf, filters.plans],
            [
              subjects.deadLetter(channel, broadcast, user, subscription),
              filters.deadLettersOf,
              filters.deadLetters
            ]
          ]
          for (const [subject, of, all] of pairs) {
            assert.isTrue(sees(of(broadcast), subject), subject)
            assert.isFalse(sees(of(other), subject), subject)
            assert.isTrue(sees(all, subject), subject)
          }
        }
      )
    )
  })

  it("lies in exactly one of the two streams, and every job before exactly one consumer", () => {
    fc.assert(
      fc.property(
        channel,
        broadcast,
        user,
        subscription,
        (channel, broadcast, user, subscription) => {
          const inLog = [
            subjects.subscription(user),
            subjects.registration(channel, user),
            subjects.broadcast("rest", channel),
            subjects.rejected(broadcast),
            subjects.finished(channel, broadcast),
            subjects.state(broadcast)
          ]
          const jobs = [
            subjects.shard(broadcast, "a.b"),
            subjects.retry(originToken("push.example.com"), broadcast, user, subscription)
          ]
          for (const job of jobs.slice()) {
            const second = subjects.jobOfRun(job, 2)
            // Whichever run it is copied from, a job of a later run has one subject.
            assert.equal(subjects.jobOfRun(subjects.jobOfRun(job, 1), 2), second)
            jobs.push(second)
          }
          const inWork = [
            ...jobs,
            subjects.plan(channel, broadcast),
            subjects.shardOutcome(channel, broadcast, "all"),
            subjects.pushOutcome(channel, broadcast, user, subscription),
            subjects.deadLetter(channel, broadcast, user, subscription)
          ]
          const streamsOf = (subject: string) =>
            [log, work]
              .filter((stream) => stream.subjects.some((filter) => sees(filter, subject)))
              .map(({ name }) => name)
          for (const subject of inLog)
            assert.deepStrictEqual(streamsOf(subject), [log.name], subject)
          for (const subject of inWork)
            assert.deepStrictEqual(streamsOf(subject), [work.name], subject)
          for (const subject of jobs) {
            const consumers = Object.values(work.consumers).filter((consumer) =>
              consumer.filters.some((filter) => sees(filter, subject))
            )
            assert.lengthOf(consumers, 1, subject)
          }
        }
      )
    )
  })
})

describe("a bucket key", () => {
  it("of a registration names its user and matches the filter of its own shard only", () => {
    fc.assert(
      fc.property(channel, user, (channel, user) => {
        const key = keys.registration(channel, user)
        assert.strictEqual(userOfKey(key), user)
        assert.isTrue(sees(keys.registrationsOf(channel, "all"), key))
        for (const depth of [1, 2]) {
          const seeing = shardsAt(depth).filter((prefix) =>
            sees(keys.registrationsOf(channel, prefix), key)
          )
          assert.deepStrictEqual(seeing, [shardPath(user).slice(0, 2 * depth - 1)])
        }
      })
    )
  })
})
