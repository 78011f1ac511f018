// The command `bellcast` where the node on PATH is too old for the service.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { cp, mkdir, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { temporaryFolder } from "#test/folder.ts"

const launcher = fileURLToPath(new URL("../../src/cli/bellcast.js", import.meta.url))
const old = 'data:text/javascript,Object.defineProperty(process.versions,"node",{value:"18.20.4"})'

/** A checkout whose command prints its arguments, and ends with 7 on SIGTERM. */
const checkout = async () => {
  const folder = await temporaryFolder()
  await mkdir(join(folder, "src/cli"), { recursive: true })
  await cp(launcher, join(folder, "src/cli/bellcast.js"))
  await writeFile(join(folder, "package.json"), '{"type":"module"}')
  await writeFile(
    join(folder, "src/cli/main.ts"),
    `const words: ReadonlyArray<string> = process.argv.slice(2)
    process.once("SIGTERM", () => process.exit(7))
    if (words[0] === "wait") setInterval(() => {}, 1000)
    console.log(process.versions.node, words.join())`
  )
  return folder
}

const start = (folder: string, ...args: ReadonlyArray<string>) =>
  spawn(process.execPath, ["--import", old, join(folder, "src/cli/bellcast.js"), ...args])

describe("bellcast with an old Node", () => {
  it("runs with the Node that `make install` fetched, and passes on signals and exit codes", {
    timeout: 30_000
  }, async () => {
    const folder = await checkout()
    const bin = join(folder, ".tools/node_modules/node/bin")
    await mkdir(bin, { recursive: true })
    await symlink(process.execPath, join(bin, "node"))
    const child = start(folder, "wait", "for me")
    const [printed] = await once(child.stdout.setEncoding("utf8"), "data")
    assert.strictEqual(printed, `${process.versions.node} wait,for me\n`)
    child.kill("SIGTERM")
    assert.deepEqual(await once(child, "exit"), [7, null])
  })

  it("says what to do where there is none", async () => {
    const child = start(await checkout(), "streams")
    const printed = text(child.stderr)
    assert.deepEqual(await once(child, "exit"), [1, null])
    assert.match(
      await printed,
      /^bellcast: Node 18\.20\.4 is too old: .*`make install` fetches it$/m
    )
  })
})
