// Scheduled broadcasts by requests on NATS, and when the rights of their publishers are revoked.
import { assert, it } from "vitest"
import { call, publishAt } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"
import { idOf } from "../support/users.ts"

const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString()

it("names the broadcasts that a revoked publisher leaves scheduled", async () => {
  await using nats = await startNats()
  const env = {
    BELLCAST_AUTH_POLICIES: "basicauth,token",
    BELLCAST_CHANNEL_WRITE_PRINCIPALS: `other=${idOf("nobody")}`
  }
  await using service = await startService({ natsUrl: nats.url, env })
  const cli = (...args: ReadonlyArray<string>) => runCli([...args, "--nats", nats.url])
  const publisher = idOf("publisher")
  for (const channel of ["news", "sport"])
    assert.equal((await cli("permissions", "grant", channel, publisher)).code, 0)
  const at = inHours(1)
  const news = await publishAt(service.url, "/channels/news", { at })
  const both = await publishAt(service.url, "/broadcasts", {
    at,
    to: { channels: ["news", "sport"] }
  })
  const sport = await publishAt(service.url, "/channels/sport", { at })
  const ended = await publishAt(service.url, "/channels/news", { at })
  assert.equal((await cli("broadcast", "cancel", ended)).code, 0)
  const revoked = await cli("permissions", "revoke", "news", publisher)
  assert.match(revoked.stdout, new RegExp(`\\(bellcast broadcast cancel\\): ${news}, ${both}\\n$`))
  assert.match((await cli("permissions", "revoke", "sport", publisher)).stdout, /: \d+, \d+\n$/)
  // The publisher may have had the right as one of a group.
  assert.match(
    (await cli("permissions", "revoke", "news", "group:openid:staff")).stdout,
    new RegExp(`: ${news}, ${both}\\n$`)
  )
  const none = await cli("permissions", "revoke", "else", publisher)
  assert.notInclude(none.stdout, "scheduled")

  const made = await cli("token", "create", "cron", "--channel", "*", "--expires", "9h")
  const authorization = `Bearer ${made.stdout.trim()}`
  const path = "/channels/news"
  const { body } = await call(service.url, "POST", path, undefined, { at }, { authorization })
  // A second time says so, too: the first one may have ended before.
  for (const said of ["no gateway accepts it", "nothing to change"]) {
    const { code, stdout } = await cli("token", "revoke", "cron")
    assert.equal(code, 0)
    assert.match(stdout, new RegExp(`${said}\\n.*: ${body.id}\\n$`))
  }
  assert.notEqual(body.id, sport)
})

it("names those, too, that no fanout has read yet", async () => {
  await using nats = await startNats()
  const env = { BELLCAST_CHANNEL_WRITE_PRINCIPALS: `other=${idOf("nobody")}` }
  await using service = await startService({ natsUrl: nats.url, roles: "gateway,projection", env })
  const cli = (...args: ReadonlyArray<string>) => runCli([...args, "--nats", nats.url])
  const publisher = idOf("publisher")
  assert.equal((await cli("permissions", "grant", "news", publisher)).code, 0)
  const [first, ended, last] = [
    await publishAt(service.url, "/channels/news", { at: inHours(1) }),
    await publishAt(service.url, "/channels/news", { at: inHours(1) }),
    await publishAt(service.url, "/channels/news", { at: inHours(1) })
  ]
  await publishAt(service.url, "/channels/news", {})
  assert.equal((await cli("broadcast", "cancel", ended)).code, 0)
  const revoked = await cli("permissions", "revoke", "news", publisher)
  assert.match(revoked.stdout, new RegExp(`: ${first}, ${last}\\n$`))
})

it("are published and cancelled by requests on NATS", async () => {
  await using nats = await startNats()
  const env = { BELLCAST_CHANNEL_WRITE_PRINCIPALS: "news=nats:billing" }
  await using _service = await startService({ natsUrl: nats.url, env })
  await using admin = await connectAdmin(nats.url)
  const request = async (operation: string, body: unknown) => {
    const subject = `bellcast.api.billing.${operation}`
    const msg = await admin.nc.request(subject, JSON.stringify(body), { timeout: 15_000 })
    return msg.json<Record<string, unknown> & { data: object }>()
  }
  const at = inHours(1)
  const { id } = await request("publish", { at, to: { channels: ["news"] } })
  const one = { broadcast: id }
  assert.deepInclude((await request("broadcast", one)).data, { state: "scheduled", at })
  assert.deepInclude(await request("pause", one), { code: 409, errno: 124 })
  assert.deepInclude((await request("cancel", one)).data, { state: "cancelled" })
  const refused = await request("publish", { at: "tomorrow", to: { channels: ["news"] } })
  assert.deepInclude(refused, { code: 400, errno: 109 })
})
