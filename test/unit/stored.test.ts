// What stays in memory of a message that was received.
import { setImmediate } from "node:timers/promises"
import type { StoredMsg } from "@nats-io/jetstream"
import { MsgImpl } from "@nats-io/nats-core/internal"
import { assert, it } from "vitest"
import { pad } from "#delivery/push/encrypt.ts"
import { collector } from "#memory/upkeep.ts"
import { copyOf, type Stored, storedOfRead } from "#nats/stream/stored.ts"

const head = "NATS/1.0\r\nBellcast-Type: broadcast/1\r\nBellcast-Rate: 5\r\n\r\n"
const body = JSON.stringify({ data: { n: 1 }, ttl: 60, urgency: "normal", topic: null })

/** A message as nats.js has it: slices of the 64 KiB that the socket was read into. */
const receive = (): { readonly stored: Stored; readonly socketBytes: WeakRef<ArrayBuffer> } => {
  const socketBytes = new Uint8Array(65_536)
  const received = socketBytes.subarray(0, head.length + body.length)
  received.set(Buffer.from(head + body))
  const [subject, hdr] = [Buffer.from("bellcast.cmd.broadcast.news.1"), head.length]
  const msg = new MsgImpl({ subject, sid: 1, hdr, size: received.length }, received, undefined!)
  const stored = storedOfRead({
    subject: msg.subject,
    seq: 7,
    time: new Date(1_000),
    header: msg.headers!,
    string: () => msg.string()
  } as StoredMsg)
  return { stored, socketBytes: new WeakRef(socketBytes.buffer) }
}

it("a copy of a message has all of it but the bytes of the socket", () => {
  const { stored } = receive()
  const copy = copyOf(stored)
  const { at, message, seq, subject, text } = stored
  assert.deepInclude(copy, { at, message, seq, subject, text })
  assert.equal(message.type, "broadcast/1")
  assert.equal(copy.header("Bellcast-Rate"), "5")
  assert.isUndefined(copy.header("Bellcast-Start-At"))
})

it("a cache that has the copy does not hold the bytes of the socket", async () => {
  const copies = Array.from({ length: 3 }, () => {
    const { socketBytes, stored } = receive()
    return { copy: copyOf(stored), socketBytes }
  })
  // A weak reference is kept until the turn of the event loop is over.
  await setImmediate()
  collector()()
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
