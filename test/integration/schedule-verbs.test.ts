// Scheduled broadcasts when the rights of their publishers are revoked.
import { assert, it } from "vitest"
import { call, publishAt } from "../support/client.ts"
import { runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"
import { inHours } from "../support/times.ts"
import { useService } from "../support/use-service.ts"
import { idOf } from "../support/users.ts"

const shared = useService({
  roles: "gateway,projection",
  env: {
    BELLCAST_AUTH_POLICIES: "basicauth,token",
    BELLCAST_CHANNEL_WRITE_PRINCIPALS: `other=${idOf("nobody")}`
  }
})

// The first: no fanout runs yet.
it("names those, too, that no fanout has read yet", async () => {
  const { nats, service } = shared
  const cli = (...args: ReadonlyArray<string>) => runCli([...args, "--nats", nats.url])
  const publisher = idOf("publisher")
  assert.equal((await cli("permissions", "grant", "unread", publisher)).code, 0)
  const [first, ended, last] = [
    await publishAt(service.url, "/channels/unread", { at: inHours(1) }),
    await publishAt(service.url, "/channels/unread", { at: inHours(1) }),
    await publishAt(service.url, "/channels/unread", { at: inHours(1) })
  ]
  await publishAt(service.url, "/channels/unread", {})
  assert.equal((await cli("broadcast", "cancel", ended)).code, 0)
  const revoked = await cli("permissions", "revoke", "unread", publisher)
  assert.match(revoked.stdout, new RegExp(`: ${first}, ${last}\\n$`))
})

it("names the broadcasts that a revoked publisher leaves scheduled", async () => {
  const { nats, service } = shared
  await using _ = await startService({ natsUrl: nats.url, roles: "fanout,delivery,tally" })
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
