// `bellcast client --out FOLDER`: the files that a site serves.
import { mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, it } from "vitest"
import { addressOf } from "#cli/client.ts"
import { temporaryFolder } from "../support/folder.ts"
import { runCli } from "../support/run-cli.ts"

const source = (name: string) => readFile(new URL(`../../.built/${name}`, import.meta.url), "utf8")
const names = ["client.d.ts", "client.js", "words.d.ts", "words.js", "worker.d.ts", "worker.js"]

it("copies all files, with types, says what a page needs, and replaces older copies", async () => {
  const folder = join(await temporaryFolder(), "public", "bellcast")
  const { code, stderr, stdout } = await runCli(["client", "--out", folder])
  assert.deepEqual([code, stderr], [0, ""])
  assert.deepEqual((await readdir(folder)).sort(), names)
  assert.include(stdout, 'import { connect } from "/bellcast/client.js"')
  assert.include(stdout, '<button id="enable">')
  assert.include(stdout, 'importScripts("/bellcast/worker.js")')
  for (const name of names) {
    const text = await source(name)
    await writeFile(join(folder, name), `${text.split("\n")[0]}\nan("older version")\n`)
    assert.equal((await runCli(["client", "--out", folder])).code, 0)
    assert.equal(await readFile(join(folder, name), "utf8"), text)
  }
})

it("says with --check which copies are missing or of another version, and fails", async () => {
  const folder = await temporaryFolder()
  const check = () => runCli(["client", "--out", folder, "--check"])
  await runCli(["client", "--out", folder])
  assert.deepEqual(await check(), { code: 0, stdout: "", stderr: "" })
  const worker = join(folder, "worker.js")
  await writeFile(worker, (await source("worker.js")).replace(/ \d+\.\d+\.\d+/, " 0.0.1"))
  await rm(join(folder, "words.d.ts"))
  const { code, stderr } = await check()
  assert.equal(code, 1)
  assert.match(stderr, /not the copies of this version: \S+\/worker\.js, \S+\/words\.d\.ts; run /)
  assert.include(await readFile(worker, "utf8"), " 0.0.1")
})

it.each([
  ["a script", "self.addEventListener('fetch', () => {})\n"],
  ["an empty file", ""]
])("leaves a worker of the site, %s, as it is, and then copies nothing", async (_, own) => {
  const folder = join(await temporaryFolder(), "public")
  await mkdir(folder)
  await writeFile(join(folder, "worker.js"), own)
  const { code, stderr } = await runCli(["client", "--out", folder])
  assert.equal(code, 1)
  assert.match(stderr, /worker\.js is no copy of Bellcast's: name another folder/)
  assert.deepEqual(await readdir(folder), ["worker.js"])
  assert.equal(await readFile(join(folder, "worker.js"), "utf8"), own)
})

it("copies nothing where it cannot write both", async () => {
  const folder = await temporaryFolder()
  await symlink(join(folder, "none", "worker.js"), join(folder, "worker.js"))
  const { code, stderr } = await runCli(["client", "--out", folder])
  assert.equal(code, 1)
  assert.match(stderr, /cannot be written \(ENOENT\)/)
  assert.deepEqual(await readdir(folder), ["worker.js"])
})

it("takes the folder's address from where it is below the root of the site", async () => {
  assert.equal(addressOf("public"), "")
  assert.equal(addressOf("/"), "")
  assert.equal(addressOf("/srv/site/public/"), "")
  assert.equal(addressOf("web/public/js/push"), "/js/push")
  assert.equal(addressOf("/var/www/html/push alerts"), "/push%20alerts")
  assert.equal(addressOf("static/bellcast"), "/bellcast")
  const folder = join(await temporaryFolder(), "public")
  const { stdout } = await runCli(["client", "--out", folder])
  assert.include(stdout, "served as / (")
  assert.include(stdout, 'import { connect } from "/client.js"')
  assert.include(stdout, 'worker: "/worker.js"')
})

it("demands a folder", async () => {
  const { code, stderr } = await runCli(["client", "--out", ""])
  assert.equal(code, 1)
  assert.match(stderr, /--out names no folder/)
})

it("says that it cannot write", async () => {
  const file = join(await temporaryFolder(), "file")
  await writeFile(file, "")
  const { code, stderr } = await runCli(["client", "--out", join(file, "bellcast")])
  assert.equal(code, 1)
  assert.match(stderr, /bellcast cannot be written \(ENOTDIR\)/)
})
