// The files of nats-server after an erasure have of the user what .github/PRIVACY.md says, and the
// cure that it names leaves nothing in the buckets.
import { readFileSync } from "node:fs"
import { assert, it } from "vitest"
import { bucketStream, projections } from "#streams/buckets.ts"
import { call, finishedAt, publishAt, until } from "../support/client.ts"
import { inFiles } from "../support/erased.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { permit, runCli } from "../support/run-cli.ts"
import { type Service, secretEnvironment, startService } from "../support/service.ts"
import { idOf, tokenOf } from "../support/users.ts"

const needle = "nEEdle0fAPerson"
const env = {
  BELLCAST_OPERATOR_PRINCIPALS: idOf("operator"),
  BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher"),
  BELLCAST_LOG_REQUESTS: "false"
}

const requestsTo =
  ({ url }: Service) =>
  (method: string, path: string, user: string, body?: unknown) =>
    until(
      () => call(url, method, path, user, body),
      ({ status }) => status >= 200 && status < 300
    )

/** Ann has a browser that changed ten times, channels, a right, drafts and broadcasts. */
const prepare = async (service: Service, natsUrl: string, subscription: object) => {
  const request = requestsTo(service)
  await permit(natsUrl, "grant", "news", "ann")
  const form = (n: number) => ({ data: { ...subscription, label: `${needle} ${n}` } })
  const { id } = (await request("POST", "/subscriptions", "ann", form(0))).body.data
  for (let n = 1; n <= 10; n++) await request("PUT", `/subscriptions/${id}`, "ann", form(n))
  for (const channel of ["news", "other", "alone"])
    await request("PUT", `/channels/${channel}/registration`, "ann")
  await request("PUT", "/channels/news/registration", "bob")
  await request("DELETE", "/channels/other/registration", "ann")
  const letter = { data: { n: needle }, to: { users: [idOf("ann")] } }
  const sent = await publishAt(service.url, "/broadcasts", letter)
  await finishedAt(service.url, `/broadcasts/${sent}`, "publisher")
  await request("POST", "/channels/news", "ann", { data: { n: 1 } })
  await request("PUT", "/drafts/for-ann", "publisher", { data: letter })
  const own = { data: { n: 2 }, to: { channels: ["news"] } }
  await request("PUT", "/drafts/of-ann", "ann", { data: own })
  await request("DELETE", "/drafts/of-ann", "ann")
  await request("GET", `/users/${encodeURIComponent(idOf("ann"))}`, "operator")
  await permit(natsUrl, "revoke", "news", "ann")
}

/** The buckets that the document names, with a file that an erasure leaves. */
const documented = () => {
  const text = readFileSync(new URL("../../.github/PRIVACY.md", import.meta.url), "utf8")
  const [, section = ""] = text.split("## What is left on disks")
  return new Set([...section.matchAll(/^\| Files of `(\w+)`/gm)].map(([, name]) => name!))
}

const texts = { id: idOf("ann"), pseudonym: tokenOf("ann"), needle }
const found = (folder: string) =>
  Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, inFiles(folder, text)] as const)
  )
const streamsIn = (all: ReturnType<typeof found>) =>
  new Set(Object.values(all).flatMap((counts) => Object.keys(counts)))

/** Streams with messages that stay, whatever is done to the buckets. */
const stays = { id: ["BELLCAST_LOG"], pseudonym: ["BELLCAST_LOG", "BELLCAST_WORK"], needle: [] }

it("files have after an erasure what the document says, and nothing in buckets after the cure", {
  timeout: 300_000
}, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  let service = await startService({ natsUrl: nats.url, env })
  try {
    await prepare(service, nats.url, push.subscribe().subscription)
    await requestsTo(service)("DELETE", "/", "ann")
    await using admin = await connectAdmin(nats.url)
    const fact = { last_by_subj: `bellcast.evt.erased.${tokenOf("ann")}` }
    await until(
      () => admin.jsm.streams.getMessage("BELLCAST_LOG", fact).catch(() => null),
      (stored) => stored !== null
    )
    const left = await until(
      async () => found(nats.folder!),
      // The forms of a draft go a moment after its end.
      (now) => now["needle"]!["BELLCAST_LOG"] === undefined
    )
    console.log("left in files:", left)
    assert.isAbove(left["pseudonym"]!["KV_bellcast_registrations"]!, 1)
    const named = documented()
    for (const stream of streamsIn(left))
      assert.isTrue(stream.startsWith("BELLCAST_") || named.has(stream), stream)
    // No user of this test logs in.
    named.delete("KV_bellcast_cache")
    for (const stream of named) assert.isTrue(streamsIn(left).has(stream), stream)

    await service.stop()
    for (const bucket of projections) await admin.jsm.streams.delete(bucketStream(bucket))
    await admin.jsm.streams.delete(bucketStream("cache"))
    const rebuilt = await runCli(["rebuild", "--nats", nats.url], secretEnvironment)
    assert.deepEqual([rebuilt.code, rebuilt.stderr], [0, ""])
    service = await startService({ natsUrl: nats.url, env })
    await nats.restart()
    const verified = await until(
      () => runCli(["verify", "--nats", nats.url], secretEnvironment),
      ({ code }) => code === 0
    )
    assert.equal(verified.stderr, "")
    const after = found(nats.folder!)
    console.log("after the cure:", after)
    for (const [name, streams] of Object.entries(stays))
      assert.sameMembers(Object.keys(after[name]!), streams, name)
  } finally {
    await service[Symbol.asyncDispose]()
  }
})
