// The embedded nats-server as a process: its login, and the memory it is given.
import { readdir, readFile, writeFile } from "node:fs/promises"
import { totalmem } from "node:os"
import { join } from "node:path"
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect } from "effect"
import { assert, it } from "vitest"
import { addressIn, folderAt } from "#embedded/folder.ts"
import { launch } from "#embedded/launch.ts"
import { memoryLimitBytes } from "#embedded/limits.ts"
import { locateNatsServer } from "#embedded/program/locate.ts"
import { embeddedServer } from "#embedded/server.ts"
import { modeOf, temporaryFolder } from "../support/folder.ts"

const clientOf = (url: string) => {
  const { host, password, username } = new URL(url)
  return connect({ servers: host, ...(username && { user: username, pass: password }) })
}

const reasonOf = (url: string): Promise<string> =>
  clientOf(url).then(
    (nc) => nc.close().then(() => "connected"),
    (error: Error) => error.message
  )

/** The embedded server, as a service runs it. */
const withServer = <A>(dataDir: string, use: (url: string, pid: number) => Promise<A>) =>
  Effect.flatMap(embeddedServer(dataDir), ({ pid, url }) =>
    Effect.promise(() => use(url, pid))
  ).pipe(Effect.scoped, Effect.runPromise)

it("demands a password that is made once, also where the data folder has none", async () => {
  const dataDir = await temporaryFolder()
  const folder = folderAt(join(dataDir, "nats"))
  const binary = await Effect.runPromise(locateNatsServer)
  const before = await launch({ binary, folder: folder.root })
  const writer = await clientOf(before.url)
  await (await jetstreamManager(writer)).streams.add({ name: "OLD", subjects: ["old"] })
  await jetstream(writer).publish("old", "kept")
  await writer.close()
  await before.stop()

  const first = await withServer(dataDir, async (url, pid) => {
    const plain = `nats://127.0.0.1:${new URL(url).port}`
    assert.equal(await reasonOf(plain), "Authorization Violation")
    const wrong = url.replace(/:[^:@]+@/, ":wrong@")
    assert.equal(await reasonOf(wrong), "Authorization Violation")
    const reader = await clientOf(url)
    const message = await (await jetstreamManager(reader)).streams.getMessage("OLD", { seq: 1 })
    assert.equal(message?.string(), "kept")
    await reader.close()
    assert.equal(await readFile(folder.url, "utf8"), url)
    for (const file of [folder.password, folder.config, folder.url])
      assert.equal(await modeOf(file), "600", file)
    assert.equal(await modeOf(folder.root), "700")
    assert.match(new URL(url).password, /^[\w-]{43}$/)
    assert.notInclude(await readFile(`/proc/${pid}/cmdline`, "utf8"), new URL(url).password)
    return new URL(url).password
  })
  assert.isFalse((await readdir(folder.root)).includes("url"))
  await withServer(dataDir, async (url) => assert.equal(new URL(url).password, first))
})

it("gives no login to whoever has the port of a server that was killed", async () => {
  const folder = folderAt(await temporaryFolder())
  const binary = await Effect.runPromise(locateNatsServer)
  const server = await launch({ binary, folder: folder.root, login: true })
  assert.equal((await addressIn(folder))?.url, server.url)
  process.kill(server.pid, "SIGKILL")
  await server.exited
  assert.lengthOf(await readdir(folder.ports), 1)
  assert.isUndefined(await addressIn(folder))
  assert.isFalse((await readdir(folder.root)).includes("url"))
})

it("does not start with a damaged password, and says what to do", async () => {
  const folder = folderAt(await temporaryFolder())
  await writeFile(folder.password, "short")
  const binary = await Effect.runPromise(locateNatsServer)
  const refused = await launch({ binary, folder: folder.root, login: true }).then(
    () => "started",
    (error: Error) => error.message
  )
  assert.equal(
    refused,
    `${folder.password} is damaged: remove it, and the next start makes another`
  )
})

it("has a memory limit that follows the machine", async () => {
  const environment = await withServer(await temporaryFolder(), (_, pid) =>
    readFile(`/proc/${pid}/environ`, "utf8")
  )
  const limit = Number(/(?:^|\0)GOMEMLIMIT=(\d+)MiB\0/.exec(environment)?.[1])
  const expected = memoryLimitBytes(totalmem(), process.constrainedMemory())
  assert.equal(limit, Math.floor(expected / 1024 ** 2))
  assert.include(environment, "\0GOGC=50\0")
})
