// The table of messages: each line is whole and true, a schema has one form for ever, and a body of
// a former number is read as the newest and written as the former.
import * as Schema from "effect/Schema"
import { assert, describe, it } from "vitest"
import {
  decodeMessage,
  encodeMessage,
  isLater,
  lower,
  nameOf,
  numberFor,
  raise,
  schemas
} from "#domain/messages/forms.ts"
import { former, type Line, line } from "#domain/messages/line.ts"
import { messages } from "#domain/messages/table.ts"
import { projections } from "#streams/buckets.ts"
import { fingerprints, recorded } from "../support/fingerprints.ts"

const lines: ReadonlyArray<readonly [string, Line]> = Object.entries(messages)

describe("the table of messages", () => {
  it.each(lines)("has a whole line for %s", (_, { buckets, former, number, writers }) => {
    assert.equal(number, former.length + 1, "a schema for each number before")
    assert.isNotEmpty(writers)
    assert.includeMembers([...projections], [...buckets])
  })

  it.each(lines)("says of %s that it names a person, if a member of its body does", (_, each) => {
    const json = JSON.stringify(Schema.toJsonSchemaDocument(each.schema))
    if (/"(user|users|by|principal)":\{"type":"(string|array)"/.test(json))
      assert.isTrue(each.namesPerson)
  })

  it("has the recorded schema for each number", () => {
    const now = fingerprints()
    for (const [type, print] of Object.entries(recorded()))
      assert.equal(
        now[type],
        print,
        `the schema of ${type} changed or is gone, and such messages are stored: give the new ` +
          'schema a new number (streams/README.md, "A new number of a message")'
      )
    assert.sameMembers(
      Object.keys(recorded()),
      Object.keys(now),
      "record the schema of what is new: make fingerprints"
    )
  })
})

describe("a stored type", () => {
  it("is the name of a message and a number that this version reads", () => {
    for (const type of schemas.keys()) assert.equal(nameOf(type), type.split("/")[0])
    for (const type of ["plan/0", "plan/01", "plan/2", "plan", "plan/1/1", "toString/1", "/1", ""])
      assert.equal(decodeMessage(type, "{}").type, "malformed", type)
  })

  it("is written as the newest number, and read again", () => {
    const body = { by: "basicauth:operator", at: 1 }
    const stored = encodeMessage("look", body, () => 9)
    assert.deepEqual(stored, { type: "look/1", body })
    assert.deepEqual(decodeMessage(stored.type, JSON.stringify(body)), { type: "look", ...body })
  })

  it("is of a later version if the name is known and the number is higher", () => {
    assert.deepEqual(["plan/2", "plan/999999"].map(isLater), [true, true])
    for (const type of ["plan/1", "plan/0", "plan/02", "plan/1000000", "made-up/2", "plan/2 ", ""])
      assert.isFalse(isLater(type), type)
  })
})

/** A message in its third number: a name was added, and then split. */
const First = Schema.Struct({ id: Schema.Int })
const Second = Schema.Struct({ id: Schema.Int, name: Schema.String })
const Third = Schema.Struct({ id: Schema.Int, given: Schema.String, family: Schema.String })
const toSecond = former(
  First,
  Second,
  ({ id }) => ({ id, name: "No Name" }),
  ({ id }) => ({ id })
)
const toThird = former(
  Second,
  Third,
  ({ id, name }) => ({ id, given: name.split(" ")[0]!, family: name.split(" ")[1]! }),
  ({ family, given, id }) => ({ id, name: `${given} ${family}` })
)
const third = line(Third, 3, ["cli"], "state", true, [], { former: [toSecond, toThird] })

describe("a message with two numbers before its newest", () => {
  const newest = { id: 1, given: "Ann", family: "Other" }

  it("is read as the newest from each number, by every step in between", () => {
    assert.deepEqual(raise(third, 3, newest), newest)
    assert.deepEqual(raise(third, 2, { id: 1, name: "Ann Other" }), newest)
    assert.deepEqual(raise(third, 1, { id: 1 }), { id: 1, given: "No", family: "Name" })
  })

  it("is written as each number, by every step in between", () => {
    assert.deepEqual(lower(third, 3, newest), newest)
    assert.deepEqual(lower(third, 2, newest), { id: 1, name: "Ann Other" })
    assert.deepEqual(lower(third, 1, newest), { id: 1 })
  })

  it("is written in the highest number that all read, and none that it lacks the way to", () => {
    assert.deepEqual(
      [0, 1, 2, 3, 9].map((read) => numberFor(third, read)),
      [1, 1, 2, 3, 3]
    )
    const { down: _, ...upOnly } = toSecond
    const noFirst = { ...third, former: [upOnly, toThird] }
    assert.deepEqual(
      [1, 2, 3].map((read) => numberFor(noFirst, read)),
      [2, 2, 3]
    )
  })
})
