// Headers that anybody may have written: malformed ones are said to be, nothing throws, and nats.js
// itself reads by the same function.
import type { Msg } from "@nats-io/nats-core"
import { MsgImpl } from "@nats-io/nats-core/internal"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { headerIn, headersOf, readHeaders } from "#nats/connection/headers.ts"
import { type DirectMessage, directOf } from "#nats/stream/read-direct.ts"
import { sourcePaths, textOf } from "../support/documents.ts"
import { malformedBlocks, oddBlocks } from "../support/malformed.ts"

const bytesOf = (block: string) => Buffer.from(block, "latin1")

const received = (block: string) => {
  const bytes = bytesOf(block)
  const info = { subject: Buffer.from("a"), sid: 1, hdr: bytes.length, size: bytes.length }
  return new MsgImpl(info, bytes, undefined!) as Msg
}

const added = "Nats-Stream: S\r\nNats-Subject: a.b\r\nNats-Sequence: 7\r\nNats-Num-Pending: 3\r\n"

/** A block as the server returns it for a direct read (nats-server 2.15, measured). */
const directly = (block: string) =>
  received(`${block.length > 2 ? block.slice(0, -2) : "NATS/1.0\r\n"}${added}\r\n`)

const blocks = fc.oneof(
  fc.uint8Array().map((bytes) => Buffer.from(bytes).toString("latin1")),
  fc
    .array(
      fc.constantFrom(
        ...["NATS/1.0", "\r\n", "\r", "\n", ":", " ", "\t", "a", "A-b", "\xe9", "\0"],
        ...["404", "Nats-Stream: ", "Nats-Subject: c\r\n", "a: b\r\n"]
      ),
      { maxLength: 40 }
    )
    .map((parts) => parts.join("")),
  fc
    .array(fc.constantFrom("a: b\r\n", "c:\r\n", "a : b\r\n", ": ", "\r\n"))
    .map((lines) => `NATS/1.0\r\n${lines.join("")}\r\n`)
)

describe("the reader of headers", () => {
  it.each(Object.keys(malformedBlocks))("calls %s malformed", (name) => {
    assert.equal(readHeaders(bytesOf(malformedBlocks[name]!)), "malformed")
  })

  it.each(Object.keys(oddBlocks))("reads %s", (name) => {
    assert.notEqual(readHeaders(bytesOf(oddBlocks[name]!)), "malformed")
  })

  it("returns the first of several values, without blanks around it; none for an empty one", () => {
    const headers = readHeaders(bytesOf("NATS/1.0\r\na: \t b c \r\na:d\r\ne: \r\n\r\n"))
    assert.deepEqual(
      headers,
      new Map([
        ["a", ["b c", "d"]],
        ["e", [""]]
      ])
    )
    assert.equal(headerIn(headers, "a"), "b c")
    assert.isUndefined(headerIn(headers, "e"))
    assert.isUndefined(headerIn(headers, "A"))
  })

  it("never throws, and sees the same in a message that was given and one that was read", () => {
    fc.assert(
      fc.property(blocks, (block) => {
        const headers = readHeaders(bytesOf(block))
        assert.deepEqual(headersOf(received(block)), headers)
        const direct = directOf(directly(block)) as DirectMessage
        assert.deepInclude(direct, { subject: "a.b", seq: 7, pending: 3 })
        assert.deepEqual(direct.headers(), headers)
      }),
      { numRuns: 3_000 }
    )
  })

  it("lets nats.js throw on no block, and see a status only where the server names one", () => {
    for (const block of [...Object.values(malformedBlocks), ...Object.values(oddBlocks)]) {
      const { headers } = received(block)
      assert.deepEqual([headers?.code, headers?.get("Nats-Pin-Id")], [0, ""])
    }
    const { headers } = received("NATS/1.0 404 Message Not Found\r\nX: y\r\n\r\n")
    assert.deepInclude(headers, { code: 404, description: "Message Not Found" })
    assert.equal(headers?.get("X"), "y")
  })
})

describe("a direct read", () => {
  it("takes no header of a publisher for the server's", () => {
    const { seq, subject } = directOf(
      directly("NATS/1.0\r\nNats-Subject: evil\r\nNats-Sequence: 99\r\n\r\n")
    ) as DirectMessage
    assert.deepEqual([subject, seq], ["a.b", 7])
  })

  it("tells a status from a message whose publisher wrote a status", () => {
    const status = directOf(received("NATS/1.0 204 EOB\r\nNats-Num-Pending: 4\r\n\r\n"))
    assert.deepInclude(status, { code: 204, description: "EOB" })
    assert.equal("code" in status && status.header("Nats-Num-Pending"), "4")
    for (const block of ["204 EOB\r\n\r\n", "NATS/1.0 404 Not Found\r\n\r\n"])
      assert.property(directOf(directly(block)), "seq")
  })
})

it("nobody but request.ts subscribes, and nobody reads directly by nats.js", () => {
  const found = (pattern: RegExp) => sourcePaths.filter((path) => pattern.test(textOf(path)))
  assert.deepEqual(found(/\bnc\s*\.subscribe\(/), ["src/nats/connection/request.ts"])
  assert.deepEqual(found(/\bjsm\.direct\b|\.getBatch\(|\.getLastMessagesFor\(/), [])
})
