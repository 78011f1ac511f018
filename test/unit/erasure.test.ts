// Which messages of a user are over by an erasure, what the counts of a channel are without them,
// and whom a list of erased users has that LOG does not know as erased.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { comesBack, erasedLinesIn, lostErasures, overIn } from "#domain/erasure.ts"
import {
  type ChannelRegistrations,
  emptyChannel,
  evolveChannel,
  evolveRegistration,
  type Registration,
  type RegistrationCommand,
  withBegin
} from "#domain/registration.ts"
import type { UserToken } from "#streams/tokens.ts"

const seqsOver = (erasedAt: number, ...messages: ReadonlyArray<readonly [number, string]>) =>
  overIn(
    messages.map(([seq, type]) => ({ seq, isBack: comesBack({ type }) })),
    erasedAt
  ).map(({ seq }) => seq)

describe("messages of an erased user", () => {
  it("are over, also where a worker stored a fact late", () => {
    const late = [9, "subscription.gone"] as const
    assert.deepEqual(
      seqsOver(5, [1, "subscription.put"], [4, "subscription.delete"], late),
      [1, 4, 9]
    )
  })

  it("are over up to the first put of the user who came back, and not from there on", () => {
    const before = [[1, "registration.put"] as const, [7, "registration.delete"] as const]
    const back = [[8, "registration.put"] as const, [9, "registration.delete"] as const]
    assert.deepEqual(seqsOver(5, ...before, ...back), [1, 7])
    assert.deepEqual(seqsOver(5, ...back), [])
  })
})

interface Change {
  readonly user: string
  readonly type: RegistrationCommand["type"]
}

/** The counts of a channel after these commands, at the sequences 1, 2, 3... */
const countsOf = (
  changes: ReadonlyArray<Change>,
  isLeft: (user: string) => boolean
): ChannelRegistrations => {
  const registrations = new Map<string, Registration>()
  let counts = emptyChannel
  for (const [i, { type, user }] of changes.entries()) {
    if (!isLeft(user)) continue
    const command = { type, user, at: 10 * i } as const
    const next = evolveRegistration(registrations.get(user), command, i + 1)
    registrations.set(user, next)
    counts = evolveChannel(counts, next, command, i + 1)
  }
  return counts
}

const history = fc.array(
  fc.record({
    user: fc.constantFrom("ann", "bob", "cleo"),
    type: fc.constantFrom("registration.put" as const, "registration.delete" as const)
  }),
  { maxLength: 25 }
)

it("the counts of a channel are the same without the messages of an erased user", () => {
  fc.assert(
    fc.property(history, (some) => {
      const all = [...some, { user: "ann", type: "registration.delete" as const }]
      const whole = countsOf(all, () => true)
      const trimmed = countsOf(all, (user) => user !== "ann")
      if (whole.registrations === 0) return assert.equal(trimmed.registrations, 0)
      const { lastModified, seq: upTo, since } = whole
      const begun = { lastModified, since, upTo }
      const { seq: _, ...left } = withBegin(trimmed, begun)
      const { seq: __, ...expected } = whole
      assert.deepEqual(left, expected)
    })
  )
})

it("a channel that began anew since is left as it is", () => {
  const anew = { ...emptyChannel, seq: 9, since: 9, registrations: 1, lastModified: 9 }
  assert.equal(withBegin(anew, { since: 1, lastModified: 20, upTo: 8 }), anew)
})

describe("a list of erased users", () => {
  const [ann, bob] = ["a".repeat(22), "b".repeat(22)] as [UserToken, UserToken]
  const line = (user: string, at: string) => JSON.stringify({ user, at })

  it("has lost whom LOG does not know as erased then or later", () => {
    const at = "2026-01-02T03:04:05.678Z"
    const lines = erasedLinesIn(`${line(ann, at)}\n\n${line(bob, at)}\n`)
    assert.isArray(lines)
    if (typeof lines === "number") return
    const millis = Date.parse(at)
    assert.deepEqual(lostErasures(lines, new Map()), [ann, bob])
    assert.deepEqual(lostErasures(lines, new Map([[ann, millis - 1]])), [ann, bob])
    const facts = new Map([
      [ann, millis],
      [bob, millis + 5]
    ])
    assert.deepEqual(lostErasures(lines, facts), [])
  })

  it("names the line that is none", () => {
    for (const wrong of ["{}", "anna", line("anna", "2026-01-01"), line(ann, "soon")])
      assert.equal(erasedLinesIn(`${line(ann, "2026-01-01T00:00:00Z")}\n${wrong}`), 2)
  })
})
