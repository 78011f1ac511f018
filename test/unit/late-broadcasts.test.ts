// Broadcasts that were stored some time after a gateway accepted their start.
import { assert, it } from "@effect/vitest"
import { startHeader } from "#domain/broadcast-start.ts"
import { readBroadcast } from "#fanout/read-broadcast.ts"
import type { Stored } from "#nats/stream/stored.ts"

const now = Date.parse("2026-11-23T12:00:00Z")

const storedFrom = (source: string, at: string): Stored => ({
  subject: `bellcast.cmd.broadcast.${source}.news`,
  seq: 5,
  at: now,
  message: { type: "broadcast" },
  text: "{}",
  header: (name) => (name === startHeader ? at : undefined)
})

const hourAgo = "2026-11-23T10:59:59Z"
const in30Days = "2026-12-23T12:00:00.001Z"

it("sends what a gateway accepted at the bounds of a start", () => {
  for (const at of [hourAgo, in30Days]) {
    assert.property(readBroadcast(storedFrom("billing", at)), "reason")
    assert.notProperty(readBroadcast(storedFrom("rest", at)), "reason")
  }
})
