// Verbs that meet a full bucket or LOG say so before they store anything; revoking works.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, finished, publish, until } from "../support/client.ts"
import { becomes, type Room, startRoom } from "../support/room.ts"
import { runCli } from "../support/run-cli.ts"
import { secretEnvironment, vapid } from "../support/service.ts"

const full = 0.96
const permissions = "KV_bellcast_permissions"

let room: Room
beforeAll(async () => {
  room = await startRoom({ BELLCAST_AUTH_POLICIES: "basicauth token" })
})
afterAll(() => room[Symbol.asyncDispose]())

const run = (...args: ReadonlyArray<string>) =>
  runCli(args, {
    ...secretEnvironment,
    BELLCAST_NATS_URL: room.natsUrl,
    BELLCAST_DATA_DIR: "/nowhere"
  })
/** The sequence of the last command. Facts about earlier broadcasts may still come after it. */
const lastSeq = async () => {
  const query = { last_by_subj: "bellcast.cmd.>" }
  return (await room.admin.jsm.streams.getMessage("BELLCAST_LOG", query))!.seq
}
const createToken = (name: string) => run("token", "create", name, "--channel=*", "--expires=90d")
const publishWith = async (token: string) => {
  const url = `${room.service.url}/channels/verbs`
  const headers = { authorization: `Bearer ${token}` }
  return (await fetch(url, { method: "POST", headers })).status
}

/** The verb fails with one line that names the stream and the remedy, and stores nothing. */
const assertRefused = async (stream: string, remedy: string, ...args: ReadonlyArray<string>) => {
  const before = await lastSeq()
  const { code, stderr, stdout } = await run(...args)
  // A restore always says how far it came.
  const said = args[0] === "restore" ? "0 subscriptions of 1 user were restored\n" : ""
  assert.deepEqual([code, stdout], [1, said])
  assert.include(stderr, `${stream} is full`)
  assert.include(stderr, remedy)
  assert.equal(await lastSeq(), before)
}

const grants = ["permissions", "grant", "verbs", "signed:ann"] as const
/** No file is read before there is room. */
const imports = ["import", "/nowhere", "--vapid-public-key", vapid.publicKey] as const
const creates = (name: string) => ["token", "create", name, "--channel=news", "--expires=1h"]

describe("a full bucket `permissions`", { timeout: 60_000 }, () => {
  it("refuses grants and tokens in words; both can be revoked; those in force work", async () => {
    assert.equal((await run("permissions", "grant", "verbs", "signed:bob")).code, 0)
    const [kept, revoked] = [await createToken("kept"), await createToken("revoked")]
    const grow = await room.fill(permissions, full)
    const remedy = `nats stream edit ${permissions} --max-bytes`
    await assertRefused(permissions, remedy, ...grants)
    await assertRefused(permissions, remedy, ...creates("more"))
    assert.equal((await run("permissions", "revoke", "verbs", "signed:bob")).code, 0)
    assert.equal((await run("token", "revoke", "revoked")).code, 0)
    assert.equal(await publishWith(kept.stdout.trim()), 202)
    await until(
      () => publishWith(revoked.stdout.trim()),
      (status) => status === 401
    )
    await grow()
    assert.equal((await run(...grants)).code, 0)
    assert.equal((await run(...creates("more"))).code, 0)
  })

  it("without any room says that a revocation is stored and does not hold yet", async () => {
    const token = await createToken("late")
    const grow = await room.fill(permissions)
    const { code, stderr } = await run("token", "revoke", "late")
    assert.equal(code, 1)
    assert.include(stderr, `${permissions} has no room`)
    const again = await run("token", "revoke", "late")
    assert.equal(again.code, 1)
    assert.include(again.stderr, `${permissions} has no room`)
    await grow()
    await until(
      () => publishWith(token.stdout.trim()),
      (status) => status === 401
    )
  })
})

it.each(["subscriptions", "registrations", "channels"])(
  "a full bucket %s refuses an import in words",
  { timeout: 60_000 },
  async (bucket) => {
    const stream = `KV_bellcast_${bucket}`
    const grow = await room.fill(stream, full)
    try {
      await assertRefused(stream, `nats stream edit ${stream} --max-bytes`, ...imports)
    } finally {
      await grow()
    }
    assert.match((await run(...imports)).stderr, /cannot be read \(ENOENT\)/)
  }
)

it("a full LOG refuses verbs that write in words", { timeout: 60_000 }, async () => {
  const grow = await room.fill("BELLCAST_LOG", full)
  const refused = (...args: ReadonlyArray<string>) =>
    assertRefused("BELLCAST_LOG", "BELLCAST_LOG_BYTES_MAX", ...args)
  try {
    await refused(...grants.slice(0, 3), "signed:cid")
    await refused(...creates("other"))
    await refused(...imports)
  } finally {
    await grow()
  }
})

it("a full bucket `subscriptions` refuses a restore in words", { timeout: 60_000 }, async () => {
  const from = new Date(Date.now() - 60_000).toISOString()
  await room.joinWith("wrong", "dora", ["410", "201"])
  await room.broadcast("wrong")
  const list = () => call(room.service.url, "GET", "/subscriptions", "dora")
  await until(list, ({ body }) => body.data.length === 0)
  const grow = await room.fill("KV_bellcast_subscriptions", full)
  await becomes(room.heartbeat, 503)
  await assertRefused("KV_bellcast_subscriptions", "--max-bytes", "restore", "--from", from)
  await grow()
  assert.equal((await run("restore", "--from", from)).code, 0)
  await until(list, ({ body }) => body.data.length === 1)
})

it("a rebuild frees a full bucket of what the streams do not hold, then writes what it lacks", {
  timeout: 60_000
}, async () => {
  await room.joinWith("lost", "emma", ["201"])
  assert.equal((await room.register("lost", "fred")).status, 202)
  await room.service.stop()
  const stream = "KV_bellcast_channels"
  const filter = "$KV.bellcast_channels.lost.registrations"
  await room.admin.jsm.streams.purge(stream, { filter })
  const grow = await room.fill(stream)
  // On a busy machine the verb may lose its lease, and then says so.
  const { code, stderr } = await until(
    () => run("rebuild"),
    (done) => !done.stderr.includes("was lost: run this again")
  )
  assert.equal(code, 0, stderr)
  assert.equal(await room.countOf("lost"), 2)
  await room.restart()
  await grow()
})

it("full buckets and streams of broadcasts refuse a redrive in words", {
  timeout: 60_000
}, async () => {
  await room.joinWith("again", "gerd", ["418", "201"])
  const id = await publish(room.service.url, "again", { n: 1 })
  assert.deepInclude(await finished(room.service.url, "again", id), { dead: 1 })
  // The removal of the entry would make room again.
  await room.entryIsGone(id)
  const growBucket = await room.fill("KV_bellcast_broadcasts", full)
  await assertRefused("KV_bellcast_broadcasts", "--max-bytes", "redrive", id)
  await growBucket()
  const growWork = await room.fill("BELLCAST_WORK", full)
  await assertRefused("BELLCAST_WORK", "BELLCAST_WORK_BYTES_MAX", "redrive", id)
  await growWork()
  assert.equal((await run("redrive", id)).code, 0)
})
