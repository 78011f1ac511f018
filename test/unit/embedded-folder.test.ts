// Whether a server holds the folder of the embedded nats-server, by its lock.
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import * as Effect from "effect/Effect"
import { assert, describe, it } from "vitest"
import { folderAt, released, runsWith } from "#embedded/folder.ts"
import { readiness, ready } from "#embedded/launch.ts"
import { endWith } from "../../src/embedded/server.ts"
import { temporaryFolder } from "../support/folder.ts"

describe("the lock of an embedded server", () => {
  // A power cut leaves the first two, a full disk the first.
  it("is free when its content stays without a pid", () =>
    Promise.all(
      ["", "\0\0\0\0", " \n", "0\n", "-1\n"].map(async (text) => {
        const folder = folderAt(await temporaryFolder())
        await writeFile(folder.lock, text)
        assert.isFalse(await released(folder, 0), JSON.stringify(text))
        assert.isTrue(await released(folder, 2_000), JSON.stringify(text))
        assert.isFalse(existsSync(folder.lock))
      })
    ).then(() => undefined))

  it("is held while the process runs whose pid follows", async () => {
    const folder = folderAt(await temporaryFolder())
    const holder = spawn("/bin/sh", ["-c", "read line; :", "holder", folder.lock])
    await writeFile(folder.lock, "")
    const waited = released(folder, 700)
    await writeFile(folder.lock, `${holder.pid}\n`)
    assert.isFalse(await waited)
    holder.stdin.end()
    assert.isTrue(await released(folder, 5_000))
  })
})

describe("a process", () => {
  it("is known by its command line, where the system has no /proc, too", async () => {
    for (const proc of ["/proc", "/there/is/no/proc"]) {
      assert.isTrue(await runsWith(process.pid, "node", proc), proc)
      assert.isFalse(await runsWith(process.pid, "no-such-word", proc), proc)
      assert.isFalse(await runsWith(0, "node", proc), proc)
    }
    assert.isTrue(await runsWith(process.pid, "müsli", "/there/is/no/proc"))
  })
})

describe("a server that recovers its streams", () => {
  it("is waited for as long as it lives, at most 5 minutes, and the wait is logged", async () => {
    const folder = folderAt(await temporaryFolder())
    const said: Array<number> = []
    const wait = (exited: Promise<number>, millisMax: number) =>
      ready(
        { exited, printed: () => "", stop: () => Promise.resolve() },
        folder,
        (seconds) => said.push(seconds),
        { millisMax, sayMillis: 50 }
      ).catch((error: Error) => error.message)
    assert.strictEqual(
      await wait(new Promise(() => {}), 400),
      "nats-server was not ready within 0.4 s."
    )
    assert.deepEqual(said.slice(0, 2), [0.05, 0.1])
    assert.match(String(await wait(Promise.resolve(3), 60_000)), /ended with code 3 at start/)
    assert.deepEqual(readiness, { millisMax: 300_000, sayMillis: 10_000 })
  })
})

it("ends the process with its server, but not in the middle of a stop", async () => {
  const exits = async (isStopping: boolean) => {
    let count = 0
    const server = { ended: Promise.resolve({ code: 128 }) }
    await Effect.runPromise(
      endWith(
        server,
        () => isStopping,
        () => {
          count += 1
        }
      )
    )
    return count
  }
  assert.strictEqual(await exits(false), 1)
  assert.strictEqual(await exits(true), 0)
})
