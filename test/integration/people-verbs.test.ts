// `bellcast user show`, `audit --user`, `channel list` and `channel show`: what they print is what
// the service did, without the credentials of the user.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, finished, finishedAt, join, publish, publishAt, until } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { permit, runCli } from "../support/run-cli.ts"
import { type Service, secretEnvironment, startService } from "../support/service.ts"
import { idOf, tokenOf } from "../support/users.ts"

const anna = idOf("user0")

describe("verbs about people and channels", { timeout: 120_000 }, () => {
  let nats: TestNats
  let push: PushService
  let service: Service
  /** The broadcasts of the test, the oldest first. */
  let ids: ReadonlyArray<number>
  beforeAll(async () => {
    nats = await startNats()
    push = await startPushService()
    const env = {
      BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher"),
      BELLCAST_OPERATOR_PRINCIPALS: idOf("operator"),
      BELLCAST_LOG_REQUESTS: "false"
    }
    service = await startService({ natsUrl: nats.url, env })
    const { url } = service
    const early = await publish(url, "news", { n: 0 })
    await finished(url, "news", early)
    const scripts = [["201", "503", "400"], ["201"]]
    const browsers = scripts.map((script) => push.subscribe({ script }).subscription)
    await join([url], "news", browsers)
    const found = [early]
    for (const channel of ["news", "other"]) {
      found.push(await publish(url, channel, { n: 1 }))
      await finished(url, channel, found.at(-1)!)
    }
    const to = { users: [anna] }
    found.push(await publishAt(url, "/broadcasts", { data: { n: 2 }, to }))
    await finishedAt(url, `/broadcasts/${found.at(-1)}`)
    ids = found.map(Number)
  })
  afterAll(async () => {
    for (const each of [service, push, nats]) await each?.[Symbol.asyncDispose]()
  })

  const run = (...args: ReadonlyArray<string>) =>
    runCli([...args, "--nats", nats.url], secretEnvironment)
  const verb = async (...args: ReadonlyArray<string>) => {
    const { code, stderr, stdout } = await run(...args)
    assert.deepEqual([code, stderr], [0, ""])
    return stdout
  }
  const lines = async (...args: ReadonlyArray<string>) =>
    (await verb(...args, "--json"))
      .trim()
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line))

  it("audit --user says what became of each broadcast that could go to the user", async () => {
    const all = await lines("audit", "--user", anna)
    const [toUser, news, before] = all
    const [first, second, , last] = ids
    assert.lengthOf(all, 3)
    assert.deepInclude(toUser, { broadcast: last, outcome: "dead", status: 400, attempts: 2 })
    assert.notProperty(toUser, "channel")
    const delivered = { broadcast: second, channel: "news", outcome: "delivered", status: 201 }
    assert.deepInclude(news, { ...delivered, publisher: idOf("publisher"), state: "finished" })
    const none = { broadcast: first, outcome: "none", reason: "not registered when it started" }
    assert.deepInclude(before, none)
    // The pseudonym is enough, where the secret is not at hand.
    const { stdout } = await runCli(["audit", "--user", tokenOf("user0"), "--nats", nats.url])
    assert.match(stdout, new RegExp(`^ *${second} .* news .* delivered +201 +accepted +1 `, "m"))
    assert.notInclude(JSON.stringify(all), push.origin)
  })

  it("audit --user takes a broadcast, a channel and times", async () => {
    const broadcasts = async (...args: ReadonlyArray<string>) =>
      (await lines("audit", ...args, "--user", anna)).map(({ broadcast }) => broadcast)
    const [first, second, other, last] = ids
    assert.deepEqual(await broadcasts(String(second)), [second])
    assert.deepEqual(await broadcasts(String(other)), [other])
    assert.deepEqual(await broadcasts("--channel", "news"), [second, first])
    const {
      length,
      [length - 1]: end,
      ...cut
    } = await lines("audit", "--user", anna, "--limit", "2")
    assert.deepEqual([length, cut[0].broadcast, cut[1].broadcast], [3, last, second])
    assert.isTrue(end.more)
    assert.deepEqual(await broadcasts("--before", end.before), [second, first])
    const shown = await verb("audit", "--user", anna, "--limit", "2")
    assert.match(shown, new RegExp(`\n2 or more: --before ${end.before}, or a larger --limit`))
    assert.notInclude(await verb("audit", "--user", anna, "--limit", "3"), "or more")
    const at = async (id: number) => {
      const { body } = await call(service.url, "GET", `/broadcasts/${id}`, "operator")
      return new Date(body.data.accepted_at).toISOString()
    }
    assert.deepEqual(await broadcasts("--since", await at(other!)), [last])
    assert.deepEqual(await broadcasts("--before", await at(second!)), [first])
    assert.deepEqual(await broadcasts("--since", "2100-01-01T00:00Z"), [])
    assert.include(await verb("audit", "--user", idOf("nobody")), "no such broadcast")
    const minutes = new Date(Date.now() - 300_000).toISOString().slice(11, 16)
    if (minutes < "23:50") assert.lengthOf(await broadcasts("--since", `${minutes}Z`), 3)
  })

  it("audit names what is missing or wrong", async () => {
    const refused = async (expected: RegExp, ...args: ReadonlyArray<string>) => {
      const { code, stderr, stdout } = await run("audit", ...args)
      assert.deepEqual([code, stdout], [1, ""])
      assert.match(stderr, expected)
    }
    await refused(/name a broadcast, or a user with --user/)
    await refused(/without BROADCAST/, String(ids[1]), "--user", anna, "--channel", "news")
    for (const time of ["soon", "5", "2026-02-30", "2026-11-23T"])
      await refused(
        new RegExp(`Expected a time such as .*, got ${time}`),
        "--user",
        anna,
        "--since",
        time
      )
    await refused(/anna: Expected <policy>:<id>/, "--user", "anna")
    await refused(/there is no broadcast 999999/, "999999", "--user", anna)
    const { stderr } = await runCli(["audit", "--user", anna, "--nats", nats.url], {
      BELLCAST_DATA_DIR: "/nowhere"
    })
    assert.match(stderr, /needs BELLCAST_USERID_HMAC_SECRET/)
  })

  it("user show prints what GET /users/{user} responds, and grants", async () => {
    await permit(nats.url, "grant", "news", "user0")
    const path = `/users/${encodeURIComponent(anna)}`
    const { data } = (await call(service.url, "GET", path, "operator")).body
    const { grants, pseudonym, ...shown } = JSON.parse(await verb("user", "show", anna, "--json"))
    assert.deepEqual(shown, data)
    assert.deepEqual(grants, [{ channel: "news", right: "publish" }])
    assert.equal(pseudonym, tokenOf("user0"))
    await permit(nats.url, "revoke", "news", "user0")
    const [device] = data.devices
    const [dead, delivered, ...rest] = data.pushes
    assert.deepEqual([dead.broadcast, delivered.broadcast, rest], [`${ids[3]}`, `${ids[1]}`, []])
    assert.deepInclude(delivered, { channel: "news", outcome: "delivered", status: 201 })
    assert.deepInclude(dead, { outcome: "dead", subscription: device.id, attempts: 2 })
    assert.equal(device.last_delivered, delivered.at)
    const text = await verb("user", "show", anna)
    assert.match(text, new RegExp(`^user +${anna}\npseudonym +${tokenOf("user0")}\n`))
    assert.match(text, /^channels +1: news$/m)
    assert.match(text, /^may +no grant names the user; groups and settings may say more$/m)
    assert.include(text, new Date(delivered.at).toISOString())
    assert.notInclude(text, push.origin)
    const nobody = await verb("user", "show", idOf("nobody"))
    assert.match(
      nobody,
      /channels +0\nmay .*\n\nno devices\n\nno pushes of late\nbellcast audit --user/
    )
  })

  it("channel list and show print the counts, the grants and the last broadcasts", async () => {
    // Pushes of channels are counted up to a second later.
    const listed = await until(
      () => lines("channel", "list"),
      ([first]) => first?.push === 2
    )
    assert.deepEqual(listed, [{ id: "news", registrations: 2, push: 2 }])
    assert.deepEqual(await lines("channel", "list", "--name", "x*"), [])
    await call(service.url, "PUT", "/channels/small/registration", "user0")
    const [, more] = await until(
      () => lines("channel", "list", "--limit", "1"),
      ({ length }) => length === 2
    )
    assert.deepEqual(more, { more: true })
    await call(service.url, "DELETE", "/channels/small/registration", "user0")
    assert.match(await verb("channel", "list"), /^CHANNEL {2}REGISTRATIONS {2}PUSHES\nnews +2 +2$/m)
    assert.equal((await run("permissions", "grant", "news", "nats:shop")).code, 0)
    const shown = JSON.parse(await verb("channel", "show", "news", "--json"))
    assert.deepInclude(shown, { ...listed[0], publishers: ["nats:shop"], registrars: [] })
    assert.notProperty(shown, "more_broadcasts")
    const broadcasts = shown.broadcasts.map(({ id }: { readonly id: string }) => Number(id))
    assert.deepEqual(broadcasts, [ids[1], ids[0]])
    assert.match(await verb("channel", "show", "news"), /^may publish +nats:shop, beside/m)
    const empty = await verb("channel", "show", "empty")
    assert.match(empty, /^registrations +0$/m)
    assert.match(empty, /^may register +everybody, unless the settings close it$/m)
    const { code, stderr } = await run("channel", "show", "a/b")
    assert.deepEqual([code, stderr], [1, "bellcast: a channel has 1 to 255 bytes and no slash\n"])
  })

  it("audit --user says why a broadcast did not go to the user", async () => {
    const why = async (id: number | string, user: string) => {
      const found = await lines("audit", String(id), "--user", user)
      assert.lengthOf(found, 1)
      assert.deepInclude(found[0], { broadcast: Number(id), outcome: "none" })
      return found[0].reason
    }
    const named = { users: [anna, idOf("nobody")], except_users: [idOf("user1")] }
    const to = { channels: ["news"], ...named }
    const id = await publishAt(service.url, "/broadcasts", { data: { n: 3 }, to })
    await finishedAt(service.url, `/broadcasts/${id}`)
    const noDevice = "the broadcast names the user, but had no device that takes pushes"
    assert.equal(await why(id, idOf("nobody")), noDevice)
    assert.equal(await why(id, idOf("user1")), "the broadcast excepts the user")
    assert.equal(await why(ids[1]!, idOf("nobody")), "not registered when it started")
  })

  it("each help has examples", async () => {
    const broadcast = ["list", "show", "watch", "pause", "resume", "cancel"]
    const verbs = ["publish", "audit", "user show", "channel list", "channel show"]
    for (const verb of [...verbs, ...broadcast.map((each) => `broadcast ${each}`)]) {
      const { code, stdout } = await runCli([...verb.split(" "), "--help"])
      assert.equal(code, 0)
      if (/audit|list/.test(verb)) assert.match(stdout, /--limit N .*At most so many; unset: 20/)
      assert.match(stdout, new RegExp(`EXAMPLES[^]*bellcast ${verb} `))
    }
  })
})
