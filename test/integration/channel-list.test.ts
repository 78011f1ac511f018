// GET /channels: whose rights show what, on each gateway, and among names that come and go.
import { assert, it } from "vitest"
import { call, until } from "../support/client.ts"
import { rebuildAt } from "../support/history.ts"
import { startNats } from "../support/nats.ts"
import { createToken, permit, runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"
import { useShared } from "../support/use-service.ts"
import { idOf } from "../support/users.ts"

const env = {
  BELLCAST_AUTH_POLICIES: "basicauth,token",
  BELLCAST_CHANNEL_WRITE_PRINCIPALS: [
    ...[idOf("all"), `eu-*=${idOf("some")}`, `*-b=${idOf("some")}`, `us-a=${idOf("some")}`],
    `eu-a=${idOf("one")}`
  ].join(" ")
}

const shared = useShared(async (opened) => {
  const nats = opened.use(await startNats())
  const service = await startService({ natsUrl: nats.url, env, roles: "gateway,projection,tally" })
  const gateway = await startService({ natsUrl: nats.url, env, roles: "gateway" })
  return { nats, service: opened.use(service), gateway: opened.use(gateway) }
})

const change = (method: "PUT" | "DELETE", channel: string, user = "ann") =>
  call(shared.service.url, method, `/channels/${channel}/registration`, user)

const names = async (
  query: string,
  as: string | undefined,
  headers: Readonly<Record<string, string>> = {}
): Promise<ReadonlyArray<string>> => {
  const { body, status } = await call(
    ...([shared.gateway.url, "GET", `/channels?${query}`, as, undefined, headers] as const)
  )
  assert.equal(status, 200, JSON.stringify(body))
  return body.data.map(({ id }: { readonly id: string }) => id)
}

/** Waits until the list of a caller is this one: a new channel is listed within a second. */
const shows = (expected: ReadonlyArray<string>, ...given: Parameters<typeof names>) =>
  until(
    () => names(...given),
    (found) => found.join() === expected.join()
  )

it("shows what a caller may publish on, by settings, grants and tokens", async () => {
  const { gateway, nats } = shared
  for (const name of ["eu-a", "eu-b", "us-a", "us-b", "asia-a", "EU-c"]) await change("PUT", name)
  const all = ["asia-a", "eu-a", "eu-b", "EU-c", "us-a", "us-b"]
  await shows(all, "", "all")
  // The pattern `eu-*` is that of names as they are written.
  assert.deepEqual(await names("", "some"), ["eu-a", "eu-b", "us-a", "us-b"])
  assert.deepEqual(await names("prefix=EU", "some"), ["eu-a", "eu-b"])
  assert.deepEqual(await names("prefix=us-b", "some"), ["us-b"])
  assert.deepEqual(await names("", "one"), ["eu-a"])
  assert.deepEqual(await names("prefix=us", "one"), [])

  await permit(nats.url, "grant", "us-b", "one")
  await permit(nats.url, "grant", "nobody-joined", "one")
  await shows(["eu-a", "us-b"], "", "one")
  await permit(nats.url, "revoke", "us-b", "one")
  assert.deepEqual(await names("", "one"), ["eu-a"])

  const { token } = await createToken(nats.url, "cron", "--channel", "eu-*", "--channel", "us-a")
  const authorization = `Bearer ${token}`
  assert.deepEqual(await names("", undefined, { authorization }), ["eu-a", "eu-b", "us-a"])
  assert.equal((await call(gateway.url, "GET", "/channels", undefined)).status, 401)

  const { stdout } = await runCli(["channel", "list", "--prefix", "eU-", "--nats", nats.url])
  assert.match(stdout, /EU-c/)
  assert.match(stdout, /eu-b/)
  assert.notMatch(stdout, /us-|asia/)
})

it("forgets a channel that everybody left, and lists the one that begins again", async () => {
  const { nats, service } = shared
  await change("PUT", "gone")
  await shows(["gone"], "prefix=go", "all")
  await change("DELETE", "gone")
  assert.deepEqual(await names("prefix=go", "all"), [])
  await change("PUT", "gone", "bob")
  assert.deepEqual(await shows(["gone"], "prefix=go", "all"), ["gone"])
  await service.stop()
  // The index is an entry of the bucket, as the count is.
  assert.deepInclude(
    (await rebuildAt(nats.url)).find(({ bucket }) => bucket === "bellcast_channels"),
    { changed: 0 }
  )
})
