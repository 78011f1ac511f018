// The file that stores the secrets beside an embedded server: made once, changed by one command at
// a time.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { chown, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { changeKeys, freshPair, loadOrCreateSecrets } from "#secrets/file.ts"
import { type KeySet, retired, rotated } from "#secrets/key-set.ts"
import { temporaryFolder } from "../support/folder.ts"
import { states } from "../support/key-sets.ts"

const folder = async () => {
  const dir = await temporaryFolder()
  return { dir, file: join(dir, "secrets.json") }
}
const addKey = (set: KeySet) => rotated(set, freshPair(), Date.now())

describe("the file of secrets", () => {
  it("comes back as it was written, with every state and time", async () => {
    const data = await folder()
    await Effect.runPromise(loadOrCreateSecrets(data.dir))
    const oldest = (await Effect.runPromise(loadOrCreateSecrets(data.dir))).vapidKeys[0]!.publicKey
    const written = await Effect.runPromise(
      changeKeys(data.dir, (set) => retired(addKey(addKey(set)), oldest, true))
    )
    const { vapidKeys } = await Effect.runPromise(loadOrCreateSecrets(data.dir))
    assert.deepStrictEqual(states(vapidKeys), states(written))
    assert.deepStrictEqual(
      vapidKeys.map(({ state }) => state),
      ["retired", "former", "current"]
    )
    for (const { createdAt } of vapidKeys)
      assert.isAtMost(Math.abs(Date.now() - createdAt!), 60_000)
    assert.notInclude(JSON.stringify(written), Redacted.value(written[1]!.privateKey!))
  })

  it("is made once by several processes that start for the first time together", {
    timeout: 90_000
  }, async () => {
    const data = await folder()
    const dir = join(data.dir, "data")
    const module = new URL("../../src/secrets/file.ts", import.meta.url)
    const script = `
      import { Effect } from "effect"
      import { loadOrCreateSecrets } from ${JSON.stringify(module.href)}
      process.stdin.once("data", async () => {
        const secrets = await Effect.runPromise(loadOrCreateSecrets(process.argv[1]))
        const { useridHmacSecret, vapidKeys } = secrets
        console.log(useridHmacSecret, vapidKeys[0].publicKey)
        process.exit()
      })
      console.log("here")`
    const children = Array.from({ length: 6 }, () =>
      spawn(process.execPath, ["--input-type=module", "-e", script, dir])
    )
    const lines = await Promise.all(
      children.map(async (child) => {
        await once(child.stdout, "data")
        return child
      })
    ).then((ready) =>
      Promise.all(
        ready.map(async (child) => {
          child.stdin.write("go")
          const [line] = await once(child.stdout, "data")
          return String(line)
        })
      )
    )
    assert.lengthOf(lines, 6)
    assert.match(lines[0]!, /^\S{43} \S{87}\n$/)
    assert.strictEqual(new Set(lines).size, 1)
    assert.deepStrictEqual(await readdir(dir), ["secrets.json"])
  })

  it("loses no key when several change it at once: all but one are refused", async () => {
    const data = await folder()
    await Effect.runPromise(loadOrCreateSecrets(data.dir))
    const results = await Effect.runPromise(
      Effect.all(
        Array.from({ length: 20 }, () => Effect.result(changeKeys(data.dir, addKey))),
        { concurrency: "unbounded" }
      )
    )
    const done = results.filter(({ _tag }) => _tag === "Success").length
    assert.isAbove(done, 0)
    for (const each of results)
      if (each._tag === "Failure")
        assert.match(each.failure.message, /another command changes the keys/)
    assert.lengthOf((await Effect.runPromise(loadOrCreateSecrets(data.dir))).vapidKeys, 1 + done)
  })

  it("is not changed while somebody else does, or did and died", async () => {
    const data = await folder()
    await Effect.runPromise(loadOrCreateSecrets(data.dir))
    const before = await readFile(data.file, "utf8")
    await writeFile(`${data.file}.new`, "half")
    const result = await Effect.runPromise(Effect.result(changeKeys(data.dir, addKey)))
    assert.strictEqual(result._tag, "Failure")
    assert.strictEqual(await readFile(data.file, "utf8"), before)
    assert.strictEqual(await readFile(`${data.file}.new`, "utf8"), "half")
  })

  it.skipIf(process.getuid?.() !== 0)("stays its owner's when root changes it", async () => {
    const data = await folder()
    await Effect.runPromise(loadOrCreateSecrets(data.dir))
    await chown(data.file, 1234, 1234)
    await Effect.runPromise(changeKeys(data.dir, addKey))
    const { gid, mode, uid } = await stat(data.file)
    assert.deepEqual([uid, gid, mode & 0o777], [1234, 1234, 0o600])
  })

  it("that is not there is not made by a rotation", async () => {
    const data = await folder()
    await mkdir(join(data.dir, "empty"))
    const result = await Effect.runPromise(
      Effect.result(changeKeys(join(data.dir, "empty"), addKey))
    )
    assert.match(
      result._tag === "Failure" ? result.failure.message : "",
      /there is no .*secrets\.json/
    )
    assert.deepStrictEqual(await readdir(join(data.dir, "empty")), [])
  })
})
