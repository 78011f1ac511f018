// Which nats-server is taken, with small scripts in the place of servers.
import { chmod, mkdir, readdir, rename, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { install, isAtLeast, type Place, parseVersion } from "#embedded/program/install.ts"
import { locateIn, locateNatsServer } from "#embedded/program/locate.ts"
import { layerOf, readSource } from "#settings/source.ts"
import { withoutSecrets } from "#telemetry/redaction.ts"
import { temporaryFolder } from "../support/folder.ts"

describe("the version of a nats-server", () => {
  it("is read from what --version prints", () => {
    assert.strictEqual(parseVersion("nats-server: v2.15.1\n"), "2.15.1")
    assert.strictEqual(parseVersion("nats-server: v2.14.0-RC.1\n"), "2.14.0-RC.1")
    assert.isUndefined(parseVersion("nats-streaming-server version 0.25.6"))
    assert.isUndefined(parseVersion(""))
  })

  it("is compared number by number, and a preview is older than its release", () => {
    assert.isTrue(isAtLeast("2.14.0", "2.14.0"))
    assert.isTrue(isAtLeast("2.15.1", "2.14.0"))
    assert.isTrue(isAtLeast("2.100.0", "2.14.0"))
    assert.isTrue(isAtLeast("3.0.0", "2.14.0"))
    assert.isTrue(isAtLeast("2.14.1-RC.1", "2.14.0"))
    assert.isFalse(isAtLeast("2.9.25", "2.14.0"))
    assert.isFalse(isAtLeast("1.99.0", "2.14.0"))
    assert.isFalse(isAtLeast("2.14.0-RC.1", "2.14.0"))
  })
})

const prints = (version: string) => `echo "nats-server: v${version}"`

/** A machine with nothing on its PATH but these; a key is `FOLDER/COMMAND`. */
const withMachine = async (
  commands: Readonly<Record<string, string>>,
  work: (place: Place, root: string) => Promise<void>
) => {
  const root = await temporaryFolder()
  for (const folder of ["bin", "tools", "elsewhere"]) await mkdir(join(root, folder))
  for (const [name, script] of Object.entries(commands)) {
    await writeFile(join(root, name), `#!/bin/sh\n${script}\n`)
    await chmod(join(root, name), 0o755)
  }
  const signal = AbortSignal.timeout(10_000)
  const place = {
    explicit: undefined,
    path: join(root, "bin"),
    toolsDir: join(root, "tools"),
    release: { version: "2.15.0", url: "http://127.0.0.1", sha256: {}, responseMillisMax: 5_000 },
    say: () => undefined,
    signal
  }
  await work(place, root)
}

const failure = (located: Promise<string>): Promise<string> =>
  located.then(
    (file) => `found ${file}`,
    (error: Error) => error.message
  )

describe("locate", () => {
  it("takes the named one before all others", () =>
    withMachine(
      {
        "elsewhere/mine": prints("2.14.3"),
        "bin/nats-server": prints("2.15.1"),
        "tools/nats-server": prints("2.15.1")
      },
      async (place, root) => {
        const explicit = join(root, "elsewhere/mine")
        assert.strictEqual(await locateIn({ ...place, explicit }), explicit)
      }
    ))

  it("fails at once when the named one is too old, missing or wrong, even if others would do", () =>
    withMachine(
      {
        "elsewhere/old": prints("2.10.1"),
        "elsewhere/other": "echo hello",
        "bin/nats-server": prints("2.15.1")
      },
      async (place, root) => {
        const named = (name: string) =>
          failure(locateIn({ ...place, explicit: join(root, "elsewhere", name) }))
        assert.match(
          await named("old"),
          /^BELLCAST_NATS_SERVER: .*old is 2\.10\.1, older than 2\.14\.0/
        )
        assert.match(
          await named("other"),
          /^BELLCAST_NATS_SERVER: .*not a nats-server: it printed "hello"/
        )
        assert.match(await named("missing"), /^BELLCAST_NATS_SERVER: .*missing does not exist/)
      }
    ))

  it("takes the one on PATH when it is new enough, else the one fetched earlier", async () => {
    const machine = (onPath: string) => ({
      "bin/nats-server": prints(onPath),
      "tools/nats-server": prints("2.15.1")
    })
    await withMachine(machine("2.14.0"), async (place, root) =>
      assert.strictEqual(await locateIn(place), join(root, "bin/nats-server"))
    )
    await withMachine(machine("2.9.25"), async (place, root) =>
      assert.strictEqual(await locateIn(place), join(root, "tools/nats-server"))
    )
  })

  it("looks on the PATH of the process, which is no setting of Bellcast", () =>
    withMachine({ "bin/nats-server": prints("2.15.1") }, async (place, root) => {
      const before = process.env["PATH"]
      process.env["PATH"] = `${place.path}:${before}`
      try {
        const located = Effect.provide(locateNatsServer, layerOf(readSource({})))
        assert.strictEqual(await Effect.runPromise(located), join(root, "bin/nats-server"))
      } finally {
        process.env["PATH"] = before
      }
    }))

  it("says in one message what was tried, why it failed and what to do", () =>
    withMachine({ "bin/nats-server": prints("2.9.25") }, async (place) => {
      const message = await failure(locateIn(place))
      assert.match(message, /^ {2}BELLCAST_NATS_SERVER: not set$/m)
      assert.match(message, /^ {2}PATH: .* is 2\.9\.25, older than 2\.14\.0$/m)
      assert.match(message, /^ {2}\.tools\/nats-server: none there$/m)
      assert.match(message, /^ {2}official release: no archive for .* is known$/m)
      assert.match(message, /^ {2}Debian package \(sid\): no apt-get on PATH$/m)
      assert.match(message, /^Shortest way: .*BELLCAST_NATS_SERVER.*BELLCAST_NATS_URL/m)
      assert.equal(withoutSecrets(message), message)
    }))

  it("installs a fetched server atomically, and rejects a broken one", () =>
    withMachine({}, async (place) => {
      // Written before any process starts: a child just forked would still hold the file open for
      // writing.
      const made = async (name: string, script: string) => {
        const file = join(place.toolsDir, "..", name)
        await writeFile(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
        return async (folder: string) => {
          await rename(file, join(folder, "fetched"))
          return join(folder, "fetched")
        }
      }
      const fetches = await Promise.all(
        [1, 2, 3, 4].map((n) => made(`good-${n}`, prints("2.15.1")))
      )
      const broken = await made("broken", "exit 3")
      await Promise.all(fetches.map((fetch) => install(place, fetch)))
      assert.match(await failure(install(place, broken)), /ended with 3/)
      assert.deepStrictEqual(await readdir(place.toolsDir), ["nats-server"])
      assert.strictEqual(await locateIn(place), join(place.toolsDir, "nats-server"))
    }))
})
