// A client that does not read its stream of events: what it costs, and when it is reset.
import { once } from "node:events"
import { createServer } from "node:http"
import { type AddressInfo, connect } from "node:net"
import { Effect } from "effect"
import { afterEach, assert, beforeEach, it, vi } from "vitest"
import type { Write } from "#gateway/http/response.ts"
import { sendEvents, UnreadResponses } from "#gateway/server/send.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }))
afterEach(() => void vi.useRealTimers())

const piece = `data: ${"x".repeat(65_528)}\n\n`

it("holds one event of a client that reads nothing, and resets it after 30 s", async () => {
  const reset = vi.fn()
  const unread = new UnreadResponses(reset)
  let written = 0
  let highest = 0
  const server = createServer((request, response) => {
    const events = (write: Write) =>
      Effect.forever(
        Effect.tap(
          Effect.suspend(() => write(piece)),
          () =>
            Effect.sync(() => {
              written += 1
            })
        )
      )
    const fiber = Effect.runFork(
      sendEvents(request, response, { status: 200, headers: {}, events }, unread, {
        account: "a",
        leaving: Effect.never
      })
    )
    response.once("close", () => fiber.interruptUnsafe())
  })
  server.on("connection", (socket) => {
    const look = () => {
      highest = Math.max(highest, socket.writableLength)
      if (!socket.destroyed) setImmediate(look)
    }
    look()
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1")
  client.on("error", () => undefined)
  client.pause().write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
  // The kernel takes some megabytes, then nothing more.
  let before = -1
  while (written === 0 || written !== before) {
    before = written
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  assert.isAbove(written, 1)
  assert.isBelow(highest, 2 * piece.length)
  vi.advanceTimersByTime(29_000)
  assert.equal(reset.mock.calls.length, 0)
  const closed = new Promise((resolve) => client.resume().once("close", resolve))
  vi.advanceTimersByTime(10_000)
  await closed
  assert.equal(reset.mock.calls.length, 1)
  unread.stop()
  server.close()
})
