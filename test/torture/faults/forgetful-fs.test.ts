// The forgetful file system keeps what was synced and forgets the rest, and nats-server keeps its
// promise on it only because it syncs.
import { mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { onTestFinished, type TestContext, test } from "vitest"
import { ForgetfulStore, forgetfulUnavailable, type Strictness } from "./forgetful-fs.ts"
import { client, emptyFolder, servers, until } from "./proof.ts"

const skipWithout = async ({ skip }: Pick<TestContext, "skip">) => {
  const reason = await forgetfulUnavailable()
  if (reason !== undefined) skip(reason)
}

const store = async (strictness: Strictness) => {
  const made = await ForgetfulStore.make(await emptyFolder(), strictness)
  onTestFinished(() => made.remove())
  const path = (name: string) => join(made.folder, name)
  const sync = async (name: string) => {
    const handle = await open(path(name), "r")
    await handle.sync()
    await handle.close()
  }
  return { made, path, sync, list: async () => (await readdir(made.folder)).toSorted() }
}

test("posix: a name is safe when its folder is synced", async ({ expect, skip }) => {
  await skipWithout({ skip })
  const { made, path, sync, list } = await store("posix")
  await writeFile(path("no folder sync"), "1")
  await sync("no folder sync")
  await made.losePower()
  expect(await list()).toEqual([])
  await writeFile(path("old"), "2")
  await sync("old")
  await sync(".")
  await rename(path("old"), path("new"))
  await writeFile(path("removed"), "3")
  expect(await list()).toEqual(["new", "removed"])
  await made.losePower()
  expect(await list()).toEqual(["old"])
  expect(await readFile(path("old"), "utf8")).toBe("2")
})

test("ext4: a sync of one file makes all names safe, and its own bytes", async ({
  expect,
  skip
}) => {
  await skipWithout({ skip })
  const { made, path, sync, list } = await store("ext4")
  await mkdir(path("folder"))
  await writeFile(path("folder/unsynced"), "1")
  await writeFile(path("synced"), "2")
  await sync("synced")
  await writeFile(path("later"), "3")
  await made.losePower()
  expect(await list()).toEqual(["folder", "synced"])
  expect(await readFile(path("folder/unsynced"), "utf8")).toBe("")
  expect(await readFile(path("synced"), "utf8")).toBe("2")
  await rm(path("synced"))
  await made.losePower()
  expect(await list()).toEqual(["folder", "synced"])
})

test("torn: part of what was not synced is kept, the same for a seed", async ({ expect, skip }) => {
  await skipWithout({ skip })
  const pages = async (seed: string) => {
    const { made, path, sync } = await store("ext4")
    await writeFile(path("file"), Buffer.alloc(64 * 4096, "a"))
    await sync("file")
    const handle = await open(path("file"), "r+")
    await handle.write(Buffer.alloc(64 * 4096, "b"), 0, 64 * 4096, 0)
    await handle.close()
    await made.losePower(seed)
    const bytes = await readFile(path("file"))
    return Array.from({ length: 64 }, (_, page) => String.fromCharCode(bytes[page * 4096]!)).join(
      ""
    )
  }
  const one = await pages("one")
  expect(one).toContain("a")
  expect(one).toContain("b")
  expect(await pages("one")).toBe(one)
  expect(await pages("other")).not.toBe(one)
})

/** How many of 200 acknowledged messages a single server still has after a power loss. */
const survivors = async (syncInterval: string) => {
  const nats = await servers({ nodes: 1, store: "forgetful", syncInterval })
  const connection = await client(nats.directUrl)
  await (await jetstreamManager(connection)).streams.add({ name: "S", subjects: ["made"] })
  const stream = jetstream(connection)
  for (let i = 0; i < 200; i++) await stream.publish("made", `message ${i}`)
  const [server] = nats.servers
  await server!.kill()
  await (nats.storeOf(server!.name) as ForgetfulStore).losePower()
  await server!.start()
  await until("healthy", () => nats.isHealthy())
  const manager = await jetstreamManager(await client(nats.directUrl))
  const streams = await manager.streams.list().next()
  return streams.find(({ config }) => config.name === "S")?.state.messages ?? 0
}

test("an acknowledged message survives a power loss with sync always", async ({ expect, skip }) => {
  await skipWithout({ skip })
  expect(await survivors("always")).toBe(200)
})

test("without sync it does not: the file system really forgets", async ({ expect, skip }) => {
  await skipWithout({ skip })
  expect(await survivors("2m")).toBe(0)
})
