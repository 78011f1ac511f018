// What stays in memory of a message that was received.

import { setImmediate } from "node:timers/promises"
import type { JsMsg } from "@nats-io/jetstream"
import type { Msg } from "@nats-io/nats-core"
import { MsgImpl } from "@nats-io/nats-core/internal"
import * as Effect from "effect/Effect"
import { assert, it } from "vitest"
import { pad } from "#delivery/push/encrypt.ts"
import { collect } from "#memory/upkeep.ts"
import { type DirectMessage, directOf } from "#nats/stream/read-direct.ts"
import { copyOf, type Stored, storedOfGiven, storedOfRead } from "#nats/stream/stored.ts"

const body = JSON.stringify({ data: { n: 1 }, ttl: 60, urgency: "normal", topic: null })
const subject = "bellcast.cmd.broadcast.news.1"
const own = "NATS/1.0\r\nBellcast-Type: broadcast/1\r\nBellcast-Rate: 5\r\n"
const added = `Nats-Stream: BELLCAST_LOG\r\nNats-Subject: ${subject}\r\nNats-Sequence: 7\r\n`

/** A message as nats.js has it: slices of the 64 KiB that the socket was read into. */
const receive = (head: string) => {
  const socketBytes = new Uint8Array(65_536)
  const received = socketBytes.subarray(0, head.length + body.length)
  received.set(Buffer.from(head + body))
  const info = { subject: Buffer.from(subject), sid: 1, hdr: head.length, size: received.length }
  const msg = new MsgImpl(info, received, undefined!) as Msg
  return { msg, socketBytes: new WeakRef(socketBytes.buffer) }
}

/** By a consumer, and directly. */
const ways: Readonly<
  Record<string, () => { readonly stored: Stored; readonly socketBytes: WeakRef<ArrayBuffer> }>
> = {
  given: () => {
    const { msg, socketBytes } = receive(`${own}\r\n`)
    const { data, headers } = msg
    const given = { subject, seq: 7, time: new Date(1_000), data, headers } as JsMsg
    return { stored: storedOfGiven(given), socketBytes }
  },
  read: () => {
    const { msg, socketBytes } = receive(`${own}${added}\r\n`)
    return { stored: storedOfRead(directOf(msg) as DirectMessage), socketBytes }
  }
}

it.each(Object.keys(ways))("a copy of a message that was %s has all of it", (way) => {
  const { stored } = ways[way]!()
  const copy = copyOf(stored)
  const { at, message, seq, subject, text } = stored
  assert.deepInclude(copy, { at, message, seq, subject, text })
  assert.equal(message.type, "broadcast")
  assert.equal(copy.header("Bellcast-Rate"), "5")
  assert.isUndefined(copy.header("Bellcast-Start-At"))
})

it.each(Object.keys(ways))("a copy of what was %s holds no bytes of the socket", async (way) => {
  const copies = Array.from({ length: 3 }, () => {
    const { socketBytes, stored } = ways[way]!()
    return { copy: copyOf(stored), socketBytes }
  })
  // A weak reference is kept until the turn of the event loop is over.
  await setImmediate()
  await Effect.runPromise(collect)
  for (const { copy, socketBytes } of copies) {
    assert.equal(copy.text, body)
    assert.equal(copy.header("Bellcast-Rate"), "5")
    assert.isTrue(socketBytes.deref() === undefined)
  }
})

it("a padded payload holds no page of Buffer's pool", () => {
  const padded = pad(Buffer.from("text"))
  assert.equal(padded.toString(), "text\u0002")
  assert.equal(padded.buffer.byteLength, padded.length)
})
