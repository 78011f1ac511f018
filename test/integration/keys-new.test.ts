// Fresh secrets in a file that only its owner may read, as `make keys ENV=.env` writes it.
import { execFile, spawnSync } from "node:child_process"
import { existsSync, openSync } from "node:fs"
import { chmod, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect } from "effect"
import { assert, it } from "vitest"
import { addToFile, newParts } from "#cli/keys/env-file.ts"
import { loadOrCreateSecrets } from "#secrets/file.ts"
import { fileOf } from "../support/bundle.ts"
import { modeOf, temporaryFolder } from "../support/folder.ts"
import { spawnCli } from "../support/spawn-cli.ts"
import { withLines } from "../support/vapid-keys.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const add = (file: string) => Effect.runPromise(addToFile(file, newParts()))

it("go into a new file of mode 600, and what is in it stays", { timeout: 60_000 }, async () => {
  const file = join(await temporaryFolder(), ".env")
  // ENV in the environment is a setting of sh, not of ours.
  const make = (arg: string) =>
    promisify(execFile)("make", ["keys", arg], { cwd: root, env: { ...process.env, ENV: root } })
  const { stderr, stdout } = await make(`ENV=${file}`)
  assert.equal(stdout, "")
  assert.equal(await modeOf(file), "600")
  const first = await readFile(file, "utf8")
  for (const value of Object.values(withLines({}, first)).filter((each) => each !== ""))
    assert.notInclude(stderr, value)
  assert.match(first, /^NATS_PASSWORD=[\w-]{43}$/m)

  // Without the password of NATS, readable by all, completed by its operator.
  const before = first
    .replace(/^NATS_PASSWORD=.*\n/m, "")
    .replace(/^BELLCAST_VAPID_SUBJECT=$/m, "BELLCAST_VAPID_SUBJECT=mailto:ops@example.org")
    .trimEnd()
  await writeFile(file, before)
  await chmod(file, 0o644)
  assert.deepEqual(await add(file), ["NATS_PASSWORD"])
  const after = await readFile(file, "utf8")
  assert.isTrue(after.startsWith(`${before}\n`))
  assert.match(after.slice(before.length), /^\n# .*\nNATS_PASSWORD=[\w-]{43}\n$/)
  assert.equal(await modeOf(file), "600")

  assert.deepEqual(await add(file), [])
  assert.equal(await readFile(file, "utf8"), after)
})

it("are refused where half a pair is, and where no file can be", async () => {
  const folder = await temporaryFolder()
  const file = join(folder, ".env")
  await writeFile(file, "BELLCAST_VAPID_PUBLIC_KEY=x\n")
  const refusal = (path: string) => add(path).then(String, (error: Error) => error.message)
  assert.match(await refusal(file), /BELLCAST_VAPID_PRIVATE_KEY is missing beside the other half/)
  assert.match(await refusal(join(folder, "none", ".env")), /cannot be written \(ENOENT\)/)
})

it("are printed, with a warning when others may read where they go", async () => {
  const folder = await temporaryFolder()
  const file = join(folder, "printed")
  const print = async (verb: string, mask: string, env: Readonly<Record<string, string>> = {}) => {
    const command = `rm -f ${file}; umask ${mask}; node src/cli/main.ts ${verb} > ${file}`
    const options = { cwd: root, env: { ...process.env, ...env } }
    const { stderr } = await promisify(execFile)("sh", ["-c", command], options)
    return { stderr, printed: await readFile(file, "utf8") }
  }
  const ofFolder = { BELLCAST_DATA_DIR: folder }
  await Effect.runPromise(loadOrCreateSecrets(folder))
  const { printed: settings } = await print("keys new", "077")
  for (const [verb, env] of [
    ["keys", {}],
    ["keys show", ofFolder],
    ["keys rotate", withLines(ofFolder, settings)]
  ] as const) {
    const { printed, stderr } = await print(verb, "022", env)
    assert.match(stderr, /others may read the file that these keys go to: chmod 600 it/)
    assert.match(printed, /^BELLCAST_VAPID_PRIVATE_KEY=[\w-]{43}$/m)
    assert.notInclude((await print(verb, "077", env)).stderr, "others may read")
  }
  assert.notInclude((await print("keys rotate", "022", ofFolder)).stderr, "others may read")
})

it.skipIf(!existsSync("/dev/full"))(
  "are not said to be printed where nobody got them",
  async () => {
    const full = spawnSync(process.execPath, [await fileOf("cli"), "keys"], {
      stdio: ["ignore", openSync("/dev/full", "w"), "pipe"],
      encoding: "utf8"
    })
    assert.equal(full.status, 1)
    assert.match(full.stderr, /^bellcast: standard output cannot be written \(ENOSPC\): .*\n$/)
    await using unread = await spawnCli(["keys"])
    unread.leave()
    assert.equal(await unread.exit(), 141)
    assert.equal(unread.output.stderr, "")
  }
)
