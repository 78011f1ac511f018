// Readers of subjects and bodies return a value for whatever somebody stores, and never throw: a
// consumer, a follower or a list would stop at the message.
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { depthMax } from "#basics/json.ts"
import { originIn } from "#broadcasts/state.ts"
import { publisherOf, readHeaders } from "#domain/broadcast.ts"
import { laterStart } from "#domain/broadcast-start.ts"
import { changeIn, scheduleAfter } from "#domain/broadcast-state.ts"
import { decodeMessage, nameOf, schemas } from "#domain/messages/forms.ts"
import { readBroadcast } from "#fanout/read-broadcast.ts"
import { storedOf } from "#nats/stream/stored.ts"
import { stepOf } from "#projection/step.ts"
import {
  commandKind,
  hostOfRetry,
  parseBroadcast,
  parseOfBroadcast,
  parsePublisher,
  parseRegistration,
  parseState,
  parseSubscription,
  parseToken
} from "#streams/subjects.ts"
import { decodeToken } from "#streams/tokens.ts"

const types = [...schemas.keys()]

/** Subjects: of the right form with any tokens, or any text. */
const token = fc.oneof(
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.constantFrom(
    ...["news", "=direct", "=channels", "=ZZ", "=E9", "A".repeat(22), "0", "-1", "9".repeat(30)]
  )
)
const begins = ["cmd.broadcast", "cmd.registration", "cmd.subscription", "cmd.part", "evt.state"]
const subject = fc.oneof(
  fc.string({ unit: "binary" }),
  fc
    .tuple(
      fc.constantFrom(...begins, "cmd.publisher", "cmd.token", "plan", "job.retry", "outcome"),
      fc.array(token, { maxLength: 5 })
    )
    .map(([begin, tokens]) => ["bellcast", begin, ...tokens].join("."))
)

/** Names that the schemas have, and those of JavaScript. */
const name = fc.constantFrom(
  ...["user", "at", "data", "id", "seq", "to", "users", "channels", "parts", "except", "removed"],
  ...["broadcast", "results", "endpoint", "keys", "auth", "p256dh", "schedule", "hash", "fate"],
  ...["__proto__", "constructor", "toString", "lastModified", "run", "by", "channel", "final"]
)
const value = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("\ud800", "\u0000", "__proto__", "2026-01-01T00:00:00Z", "a".repeat(5_000)),
  fc.constantFrom(0, -0, -1, 1e300, 2 ** 53, 0.1, null, true),
  fc.maxSafeInteger()
)
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    value,
    fc.array(tie("tree"), { maxLength: 4 }),
    fc
      .array(fc.tuple(name, tie("tree")), { maxLength: 8 })
      .map((entries) => Object.fromEntries(entries))
  )
}))

const text = fc.oneof(
  { weight: 3, arbitrary: tree.map((json) => JSON.stringify(json)) },
  fc.string({ unit: "binary" }),
  fc.constantFrom(...["", "\ufeff{}", "1e400", "[".repeat(20_000), '{"a":'.repeat(20_000)]),
  fc.constantFrom('{"__proto__":{"user":1},"at":1e400}', '{"user":"\\ud800"}', '"'.repeat(999))
)

const block = fc.oneof(
  fc.constantFrom(...types, "made/up", "__proto__").map((type) => `Bellcast-Type: ${type}\r\n`),
  fc.tuple(name, fc.string()).map(([key, given]) => `Bellcast-${key}: ${given}\r\n`)
)

describe("what somebody stores", () => {
  it("has a body that is a message or malformed", () => {
    fc.assert(
      fc.property(fc.constantFrom(...types, "made/up", "__proto__"), text, (type, body) => {
        const message = decodeMessage(type, body)
        assert.include([nameOf(type), "malformed"], message.type)
      }),
      { numRuns: 5_000 }
    )
    for (const type of types) {
      const deep = `{"at":${"[".repeat(depthMax)}${"]".repeat(depthMax)}}`
      assert.equal(decodeMessage(type, deep).type, "malformed")
    }
  })

  it("has a subject that names something or nothing", () => {
    const parsers = [
      ...[commandKind, hostOfRetry, parseBroadcast, parseOfBroadcast, parsePublisher, parseToken],
      ...[parseRegistration, parseState, parseSubscription, decodeToken]
    ]
    fc.assert(
      fc.property(subject, (given) => {
        for (const parse of parsers) parse(given)
      }),
      { numRuns: 5_000 }
    )
  })

  it("is a step of the projector, a broadcast or its rejection, and an origin or none", () => {
    fc.assert(
      fc.property(subject, fc.array(block, { maxLength: 3 }), text, (place, blocks, body) => {
        const hdrs = Buffer.from(`NATS/1.0\r\n${blocks.join("")}\r\n`, "latin1").toString("base64")
        const data = Buffer.from(body).toString("base64")
        const time = "2026-11-29T00:00:00Z"
        const stored = storedOf({ subject: place, seq: 7, time, data, hdrs })
        stepOf(stored)
        originIn(stored)
        readBroadcast(stored)
        readHeaders(stored.header)
        laterStart(stored.header, stored.at)
        publisherOf("rest", stored.header)
        const change = changeIn(stored.message)
        if (change !== undefined) scheduleAfter(change, stored)
      }),
      { numRuns: 5_000 }
    )
  })
})
