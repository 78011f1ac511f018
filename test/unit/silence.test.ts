// When the writes of a connection say that a stream stores nothing, and what is done about an
// embedded server then.
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { assert, describe, it } from "vitest"
import { freeBytesMin, remedyOf, restartsMax, revive, settleMillis } from "#embedded/server.ts"
import { Silences } from "#nats/connection/group-commit.ts"
import { temporaryFolder } from "../support/folder.ts"

describe("streams that acknowledge no write", () => {
  /** Writes that were sent at these times and given up two seconds later. */
  const given = (...sent: ReadonlyArray<number>) => {
    const silences = new Silences()
    for (const sentAt of sent) silences.note("LOG", false, sentAt, sentAt + 2_000)
    return silences
  }
  const silent = () => given(1_000, 5_000, 9_001)

  it("are named after three writes and some time, counted from the first write", () => {
    assert.deepEqual(given(1_000, 9_001).longerThan(10_000, 12_000), [])
    assert.deepEqual(given(1_000, 5_000, 9_000).longerThan(10_000, 12_000), [])
    assert.deepEqual(silent().longerThan(10_000, 12_000), ["LOG"])
  })

  it("are none when nobody writes after a short silence, or when this process was frozen", () => {
    assert.deepEqual(given(1_000, 1_500, 3_000).longerThan(10_000, 20_000), [])
    const frozen = new Silences()
    for (const sentAt of [1_000, 1_001, 1_002]) frozen.note("LOG", false, sentAt, 31_000)
    assert.deepEqual(frozen.longerThan(10_000, 31_001), [])
  })

  it("are none after a response, a minute without writes, or a new connection", () => {
    const answered = silent()
    answered.note("WORK", true, 4_000, 4_001)
    assert.deepEqual(answered.longerThan(10_000, 12_000), ["LOG"])
    answered.note("LOG", true, 4_000, 4_001)
    assert.deepEqual(answered.longerThan(10_000, 12_000), [])
    assert.deepEqual(silent().longerThan(10_000, 71_002), [])
    const connected = silent()
    connected.connected(12_000)
    // Sent over the connection before.
    for (const sentAt of [9_000, 10_000, 11_000])
      connected.note("LOG", false, sentAt, sentAt + 5_000)
    assert.deepEqual(connected.longerThan(1_000, 20_000), [])
  })
})

describe("an embedded server that stores nothing", () => {
  it("is restarted with space on its disk, at most five times an hour", () => {
    assert.equal(remedyOf([], 0, freeBytesMin - 1), "needsSpace")
    assert.equal(remedyOf([], 0, freeBytesMin), "restart")
    assert.equal(remedyOf([0], settleMillis - 1, freeBytesMin), "wait")
    assert.equal(remedyOf([0], settleMillis, freeBytesMin), "restart")
    const restarts = Array.from({ length: restartsMax }, (_, n) => n * 60_000)
    assert.equal(remedyOf(restarts, 5 * 60_000, freeBytesMin), "giveUp")
    assert.equal(remedyOf(restarts, 60 * 60_000, freeBytesMin), "restart")
  })

  it("is restarted by the next look after one at which its disk could not be asked", async () => {
    const folder = join(await temporaryFolder(), "mounted-later")
    let looks = 0
    const restarted = Promise.withResolvers<void>()
    const server = {
      url: "nats://127.0.0.1",
      pid: 0,
      folder,
      logFile: "",
      ended: new Promise<never>(() => undefined),
      restart: async () => restarted.resolve(),
      stop: () => Promise.resolve()
    }
    const isSilent = () => {
      looks += 1
      if (looks === 2) mkdirSync(folder)
      return true
    }
    const watched = Effect.andThen(
      revive(server, isSilent),
      Effect.promise(() => restarted.promise)
    )
    await Effect.runPromise(Effect.timeout(Effect.scoped(watched), "5 seconds"))
  })
})
