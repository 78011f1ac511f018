// Publishers whom an operator grants one channel: they may publish there at once and nowhere else,
// until it is revoked.
import { createHmac } from "node:crypto"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { startNats, type TestNats } from "#test/nats.ts"
import { runCli } from "#test/run-cli.ts"
import { type Service, secretEnvironment, startService } from "#test/service.ts"

const basic = (pair: string) => `Basic ${Buffer.from(pair).toString("base64")}`
const userSecret = secretEnvironment.BELLCAST_USERID_HMAC_SECRET
const idOf = (pair: string) =>
  `basicauth:${createHmac("sha256", userSecret).update(pair).digest("hex")}`

const anna = "anna:secret"
const bert = "bert:secret"

describe("a publisher named for a channel", () => {
  let nats: TestNats
  let service: Service
  const start = () =>
    startService({
      natsUrl: nats.url,
      roles: "gateway,projection",
      env: { BELLCAST_CHANNEL_WRITE_PRINCIPALS: idOf("root:secret") }
    })
  beforeAll(async () => {
    nats = await startNats()
    service = await start()
  })
  afterAll(async () => {
    await service.stop()
    await nats[Symbol.asyncDispose]()
  })

  const permissionsWith = (env: Readonly<Record<string, string>>, ...args: Array<string>) =>
    runCli(["permissions", ...args], {
      BELLCAST_NATS_URL: nats.url,
      BELLCAST_DATA_DIR: "/nowhere",
      ...env
    })
  const permissions = (...args: Array<string>) => permissionsWith({}, ...args)
  const publish = async (pair: string, channel: string) =>
    (
      await fetch(`${service.url}/channels/${encodeURIComponent(channel)}`, {
        method: "POST",
        headers: { authorization: basic(pair) }
      })
    ).status

  // Names that are special: to NATS, to buckets, to our own keys.
  for (const channel of ["news", "a.b >", "meta", "ü=2F"]) {
    it.concurrent(`may publish on ${channel} until it is revoked, and on no other`, async () => {
      expect(await publish(anna, channel)).toBe(403)
      expect(await permissions("grant", channel, idOf(anna))).toMatchObject({
        code: 0,
        stdout: `${idOf(anna)} may publish on ${channel}\n`
      })
      expect(await publish(anna, channel)).toBe(202)
      expect(await publish(bert, channel)).toBe(403)
      expect(await publish(anna, `${channel}s`)).toBe(403)
      expect((await permissions("grant", channel, idOf(bert))).code).toBe(0)
      expect(await publish(bert, channel)).toBe(202)
      expect(
        (await permissions("list", channel, "--json")).stdout
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line))
      ).toEqual(
        [idOf(anna), idOf(bert)]
          .sort()
          .map((principal) => ({ channel, principal, right: "publish" }))
      )
      expect(await permissions("revoke", channel, idOf(anna))).toMatchObject({
        code: 0,
        stdout:
          `${idOf(anna)} is no longer named for ${channel}; ` +
          "whom the settings name may still publish\n"
      })
      expect(await publish(anna, channel)).toBe(403)
      expect(await publish(bert, channel)).toBe(202)
      expect(await publish("root:secret", channel)).toBe(202)
    })
  }

  it("may be named by a mail address, which is not stored", async () => {
    const secret = { BELLCAST_USERID_HMAC_SECRET: userSecret }
    const named = await permissionsWith(secret, "grant", "mail", "portier:Ann@example.org")
    expect(named).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^portier:@[0-9a-f]{64} may publish on mail\n$/)
    })
    const group = await permissionsWith(secret, "grant", "mail", "group:openid:staff@example.org")
    expect(group.stdout).toMatch(/^group:openid:@[0-9a-f]{64} may publish on mail\n$/)
    const { stdout } = await permissionsWith(secret, "revoke", "mail", "portier:ann@example.org")
    expect(stdout).toMatch(/is no longer named for mail/)
    for (const env of [{}, { BELLCAST_USERID_HMAC_SECRET: `another, ${userSecret}` }]) {
      const refused = await permissionsWith(env, "grant", "mail", "portier:ann@example.org")
      expect(refused.code).toBe(1)
      expect(refused.stderr).toMatch(/BELLCAST_USERID_HMAC_SECRET/)
      expect(refused.stderr).not.toMatch(/example\.org/)
    }
  })

  it("may ask what became of a broadcast there", async () => {
    await permissions("grant", "weather", idOf(anna))
    const headers = { authorization: basic(anna) }
    const posted = await fetch(`${service.url}/channels/weather`, { method: "POST", headers })
    const location = posted.headers.get("location")!
    expect((await fetch(location, { headers })).status).toBe(200)
    expect((await fetch(location, { headers: { authorization: basic(bert) } })).status).toBe(403)
  })

  it("is named in the log, and so again after the bucket was lost and made anew", async () => {
    await permissions("grant", "lost", idOf(anna))
    await service.stop()
    const nc = await connect({ servers: nats.url })
    await (await jetstreamManager(nc)).streams.delete("KV_bellcast_permissions")
    await nc.close()
    await expect(start()).rejects.toThrow(/KV_bellcast_permissions is gone: run `bellcast rebuild`/)
    for (let i = 0; i < 2; i++)
      expect((await permissions("grant", "lost", idOf(bert))).stderr).toMatch(
        /no projection runs to apply it/
      )
    expect((await runCli(["rebuild", "--nats", nats.url])).code).toBe(0)
    service = await start()
    expect(await publish(anna, "lost")).toBe(202)
    expect(await publish(bert, "lost")).toBe(202)
  })

  it("may be every user", async () => {
    await permissions("grant", "town-hall", "system.Authenticated")
    expect(await publish(bert, "town-hall")).toBe(202)
    expect((await fetch(`${service.url}/channels/town-hall`, { method: "POST" })).status).toBe(401)
  })

  it("is not named by what is no principal or no channel, and nothing changes twice", async () => {
    expect(await permissions("grant", "news", "anna")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^bellcast: a principal is /)
    })
    for (const impossible of [
      "basicauth:aaaa",
      `${idOf(anna)}0`,
      idOf(anna).replace(/.{64}$/, (id) => id.toUpperCase())
    ]) {
      expect(await permissions("grant", "news", impossible)).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^bellcast: an id of basicauth has 64 digits/)
      })
    }
    expect(await permissions("grant", "news*", idOf(anna))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/news\* is a pattern.*CHANNEL_WRITE_PRINCIPALS="news\*=/)
    })
    for (const [impossible, why] of [
      ["ldap:anna", /there is no policy ldap/],
      ["signd:anna", /there is no policy signd/],
      ["group:signed", /group:<policy>:<name>/],
      ["group:signed:", /group:<policy>:<name>/],
      ["group:token:staff", /token has no groups/],
      ["group:basicauth:staff", /basicauth has no groups/]
    ] as const)
      expect(await permissions("grant", "news", impossible)).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(why)
      })
    // A module of the operator's, or one of our policies that is off.
    const on = { BELLCAST_AUTH_POLICIES: "ldap=./ldap.js signed-shop" }
    for (const possible of ["ldap:anna", "group:ldap:staff", "signed-shop:anna"])
      expect(await permissionsWith(on, "grant", "modules", possible)).toMatchObject({ code: 0 })
    expect(await permissionsWith(on, "grant", "modules", "openid:anna")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/openid is off: BELLCAST_AUTH_POLICIES does not name it/)
    })
    expect(await permissions("grant", "news/eu", idOf(anna))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/no slash/)
    })
    expect(await permissions("revoke", "nobody-here", idOf(anna))).toMatchObject({
      code: 0,
      stdout: `${idOf(anna)} is not named for nobody-here: nothing to change\n`
    })
    await using elsewhere = await startNats()
    const { code, stderr } = await runCli(["permissions", "list", "--nats", elsewhere.url])
    expect(code).toBe(1)
    expect(stderr).toMatch(/start the service once/)
  })
})
