// The way out: one line for each live subscription, which an import of another service reads.
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { basename, dirname } from "node:path"
import { DeliverPolicy, jetstream } from "@nats-io/jetstream"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { type Kept, readAll } from "#nats/stream/pull.ts"
import { fileOf } from "../support/bundle.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import {
  formerBrowser,
  formerKeys,
  formerPair,
  importAll,
  makeFiles,
  settingsOn
} from "../support/imports.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { type Service, startService, vapid } from "../support/service.ts"
import { idOf } from "../support/users.ts"

let nats: TestNats
let push: PushService
let service: Service
const files = makeFiles()

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  push = await startPushService()
  service = await startService({ natsUrl: nats.url, env: formerKeys })
}, 60_000)
afterAll(async () => {
  files[Symbol.dispose]()
  for (const each of [service, push, nats]) await each?.[Symbol.asyncDispose]()
})

const exported = (file: string, ...args: ReadonlyArray<string>) =>
  runCli(["export", file, ...args], settingsOn(nats.url))
const linesIn = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))

describe("an export", { timeout: 60_000 }, () => {
  it("has each live subscription with its user and channels, for another service", async () => {
    const agents = Array.from({ length: 4 }, () =>
      push.subscribe({ applicationServerKey: vapid.publicKey })
    )
    const gone = push.subscribe({ script: ["410"] })
    const standIn = formerBrowser(push)
    const all = [...agents, gone].map(({ subscription }) => subscription)
    await join([service.url], "news", all)
    await call(service.url, "PUT", "/channels/wetter%20s%C3%BCd/registration", "user0")
    await importAll(nats.url, [{ ...standIn.subscription, locale: "de" }], "--channel", "news")
    await finished(service.url, "news", await publish(service.url, "news", { n: 1 }))
    await until(
      () => call(service.url, "GET", "/subscriptions", "user4"),
      ({ body }) => body.data.length === 0
    )
    // The browser of user3 is that of user2 now.
    const { subscription: data } = agents[3]!
    assert.equal((await call(service.url, "POST", "/subscriptions", "user2", { data })).status, 201)

    const file = files.fresh()
    const { code, stderr, stdout } = await exported(file)
    assert.deepEqual([code, stdout], [0, ""])
    assert.include(stderr, "5 subscriptions")
    assert.equal(statSync(file).mode & 0o777, 0o600)
    const lines = linesIn(readFileSync(file, "utf8"))
    const lineOf = (n: number, user: string, ...channels: ReadonlyArray<string>) => ({
      ...agents[n]!.subscription,
      vapid_public_key: vapid.publicKey,
      user: idOf(user),
      channels
    })
    const { stand, others } = Object.groupBy(lines, ({ locale }) => (locale ? "stand" : "others"))
    assert.sameDeepMembers(others!, [
      lineOf(0, "user0", "news", "wetter süd"),
      lineOf(1, "user1", "news"),
      lineOf(2, "user2", "news"),
      lineOf(3, "user2", "news")
    ])
    assert.deepInclude(stand![0], { ...standIn.subscription, channels: ["news"] })
    assert.notProperty(stand![0], "user")

    const ofOne = await exported("-", "--user", idOf("user2"))
    assert.deepEqual([ofOne.code, linesIn(ofOne.stdout).length], [0, 2])
    for (const { user } of linesIn(ofOne.stdout)) assert.equal(user, idOf("user2"))

    await using another = await startNats({ syncAlways: false })
    await using next = await startService({ natsUrl: another.url, env: formerKeys })
    const read = await runCli(["import", file], settingsOn(another.url))
    assert.equal(read.stdout, "5 of 5 lines were stored\n")
    push.reset()
    const counts = await finished(next.url, "news", await publish(next.url, "news", { n: 2 }))
    assert.deepInclude(counts, { accepted: 5, delivered: 5 })
    assert.deepEqual(push.faults, [])
    assert.deepEqual(push.counts, { requests: 5, total: 5, distinct: 5, duplicates: 0 })
  })

  it("has the users whom an import named by their ids at a site, or by mail address", async () => {
    const imports = async (line: object, ...args: ReadonlyArray<string>) => {
      const env = { ...settingsOn(nats.url), BELLCAST_AUTH_POLICIES: "signed portier" }
      const all = ["import", files.of([line]), "--vapid-public-key", formerPair.publicKey, ...args]
      assert.equal((await runCli(all, env)).stdout, "1 of 1 lines were stored\n")
    }
    const [number, row, mail] = Array.from({ length: 3 }, () => formerBrowser(push).subscription)
    await imports({ ...number, user: 42 }, "--policy", "signed")
    const { endpoint: identifier, keys } = row!
    const cells = { identifier, web_auth: keys.auth, web_p256: keys.p256dh }
    await imports({ ...cells, external_user_id: "a:b" }, "--policy", "signed")
    await imports({ ...mail, user: "portier:Ann@Example.org" })
    const lines = linesIn((await exported("-")).stdout)
    const userOf = (given: typeof row) =>
      lines.find(({ endpoint }) => endpoint === given!.endpoint).user
    assert.equal(userOf(number), "signed:42")
    assert.equal(userOf(row), "signed:a:b")
    assert.match(userOf(mail), /^portier:@[0-9a-f]{64}$/)
  })

  it("fails where its output cannot be written", { timeout: 60_000 }, async () => {
    const command = `"$0" "$1" export - --nats "$2" > /dev/full`
    const args = [process.execPath, await fileOf("cli"), nats.url]
    const { status, stderr } = spawnSync("sh", ["-c", command, ...args], { encoding: "utf8" })
    assert.equal(status, 1)
    assert.include(stderr, "standard output cannot be written (ENOSPC)")
  })

  it("warns where others may read the file that its output goes to", async () => {
    const command = `umask "$3"; "$0" "$1" export - --nats "$2" > "$4"`
    const stderrOf = async (mask: string) => {
      const args = [process.execPath, await fileOf("cli"), nats.url, mask, files.fresh()]
      return spawnSync("sh", ["-c", command, ...args], { encoding: "utf8" }).stderr
    }
    assert.include(await stderrOf("022"), "others may read the file that these endpoints and keys")
    assert.notInclude(await stderrOf("077"), "others may read")
  })

  it("replaces no file, and prints to no terminal unless asked", async () => {
    const file = files.fresh()
    writeFileSync(file, "mine")
    const { code, stderr } = await exported(file)
    assert.equal(code, 1)
    assert.include(stderr, "is there already")
    assert.equal(readFileSync(file, "utf8"), "mine")
    rmSync(file)
    assert.equal((await exported(file)).code, 0)
    assert.isNotEmpty(linesIn(readFileSync(file, "utf8")))
    assert.equal(statSync(file).mode & 0o777, 0o600)
    const names = readdirSync(dirname(file))
    assert.isEmpty(names.filter((name) => name.startsWith(`${basename(file)}.`)))
    const { isTTY } = process.stdout
    process.stdout.isTTY = true
    try {
      assert.match((await exported("-")).stderr, /on a terminal stay in its history/)
      assert.include((await exported("-", "--terminal")).stdout, '"endpoint"')
    } finally {
      process.stdout.isTTY = isTTY
    }
    assert.isNotEmpty(linesIn((await exported("-")).stdout))
  })
})

/** A stream with so many keys, and what a reader sees of it. */
const startReading = async (kept: Kept, count = 600) => {
  const admin = await connectAdmin(nats.url)
  const js = jetstream(admin.nc)
  const name = `READ-${kept}`
  const write = (n: number) => js.publish(`${name}.k${n}`)
  const all = Array.from({ length: count }, (_, n) => n)
  const ofBucket = { max_msgs_per_subject: 1, deliver_policy: DeliverPolicy.LastPerSubject }
  const { deliver_policy = DeliverPolicy.All, ...config } = kept === "last" ? ofBucket : {}
  await admin.jsm.streams.add({ name, subjects: [`${name}.>`], ...config })
  await Promise.all(all.map(write))
  const options = { filter_subjects: [`${name}.>`], deliver_policy }
  let batches = readAll(js, name, kept, options)
  let seen: Array<string> = []
  return {
    again: () => {
      batches = readAll(js, name, kept, options)
      seen = []
    },
    write,
    remove: (n: number) => admin.jsm.streams.purge(name, { filter: `${name}.k${n}` }),
    /** Reads one batch. False: there is no more. */
    next: async () => {
      const { done, value } = await batches.next()
      for (const { subject } of value ?? []) seen.push(subject)
      return done !== true
    },
    messages: () => seen.length,
    keys: () => new Set(seen).size,
    [Symbol.asyncDispose]: async () => {
      await admin.jsm.streams.delete(name)
      await admin.nc.close()
    }
  }
}

describe("a reader", () => {
  it("of a bucket misses no entry that changes before it is read", async () => {
    await using reading = await startReading("last")
    await reading.next()
    await reading.write(1)
    await reading.write(550)
    while (await reading.next());
    assert.equal(reading.keys(), 600)
  })

  it("of a bucket ends although entries are removed before they are read", async () => {
    await using reading = await startReading("last")
    await reading.next()
    for (let n = 500; n < 600; n++) await reading.remove(n)
    while (await reading.next());
    assert.equal(reading.keys(), 500)
  })

  it("of a bucket ends although entries never stop changing", async () => {
    await using reading = await startReading("last")
    let isEnded = false
    const writer = async () => {
      for (let n = 0; !isEnded; n = (n + 7) % 600) await reading.write(n)
    }
    const writers = [writer(), writer(), writer()]
    while (await reading.next());
    isEnded = true
    await Promise.all(writers)
    assert.equal(reading.keys(), 600)
  })

  it("of a bucket misses no entry that is replaced as it reaches the end", async () => {
    await using reading = await startReading("last", 10)
    let isEnded = false
    const writer = async (n: number) => {
      for (; !isEnded; n = (n + 1) % 10) await reading.write(n)
    }
    const writers = [writer(0), writer(3), writer(6), writer(8)]
    const found = new Set<number>()
    try {
      for (let n = 0; n < 100; n++) {
        reading.again()
        while (await reading.next());
        found.add(reading.keys())
      }
    } finally {
      isEnded = true
      await Promise.all(writers)
    }
    assert.deepEqual([...found], [10])
  })

  it("of a stream ends where the stream ended at the start", async () => {
    await using reading = await startReading("all")
    while (await reading.next()) for (let n = 0; n < 200; n++) await reading.write(n)
    assert.equal(reading.messages(), 600)
  })
})
