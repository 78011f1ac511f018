// Channels that the settings close: who may register there, by a rule or by a grant, and that a
// registration stays until it is removed.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Acme, startAcme } from "../support/identity/acme.ts"
import { runCli } from "../support/run-cli.ts"
import { secretEnvironment } from "../support/service.ts"

const rules =
  "orders-*=group:acme:staff vip= board=acme:eve board=acme:ann room:1=acme:ann " +
  "mail=acme:Ann@example.org square=system.Authenticated square="

let acme: Acme

beforeAll(async () => {
  acme = await startAcme({
    BELLCAST_CHANNEL_WRITE_PRINCIPALS: "",
    BELLCAST_CHANNEL_REGISTER_PRINCIPALS: rules
  })
})
afterAll(() => acme?.[Symbol.asyncDispose]())

const send = async (method: string, path: string, user: string) =>
  (await acme.send(method, path, `acme ${user}`)).status
const registration = (method: string, channel: string, user: string) =>
  send(method, `/channels/${encodeURIComponent(channel)}/registration`, user)

/** A command of the operator, who has the settings of the service. */
const verb = (...args: ReadonlyArray<string>) =>
  runCli(args, {
    BELLCAST_NATS_URL: acme.nats.url,
    BELLCAST_AUTH_POLICIES: "acme=./acme.mjs",
    BELLCAST_CHANNEL_REGISTER_PRINCIPALS: rules,
    BELLCAST_USERID_HMAC_SECRET: secretEnvironment.BELLCAST_USERID_HMAC_SECRET
  })
const permissions = (...args: ReadonlyArray<string>) => verb("permissions", ...args)

describe("a closed channel", () => {
  it.for([
    ["orders-7", "ann|staff", 202],
    ["orders-7", "ann|readers", 403],
    ["orders-", "ann", 403],
    ["orders", "ann", 202],
    ["vip", "ann|staff", 403],
    ["vip2", "ann", 202],
    ["board", "eve", 202],
    ["board", "ann", 202],
    ["board", "bob", 403],
    ["room:1", "ann", 202],
    ["room:1", "bob", 403],
    ["mail", "ann@example.org", 202],
    ["mail", "bob@example.org", 403],
    ["square", "bob", 202],
    ["news", "bob", 202]
  ] as const)("%s: %s gets %i", async ([channel, user, status]) => {
    expect(await registration("PUT", channel, user)).toBe(status)
    expect(await acme.isRegistered(channel, user)).toBe(status === 202)
    expect(await registration("DELETE", channel, user)).toBe(202)
    expect(await acme.isRegistered(channel, user)).toBe(false)
  })

  it("is open to whom an operator names for it, until that is revoked", async () => {
    expect(await permissions("grant", "vip", "acme:ivy", "--register")).toMatchObject({
      code: 0,
      stdout: "acme:ivy may register on vip\n"
    })
    expect(await registration("PUT", "vip", "ivy")).toBe(202)
    expect(await registration("PUT", "vip", "ann")).toBe(403)
    // The right to register is no right to publish, and the other way round.
    expect(await send("POST", "/channels/vip", "ivy")).toBe(403)
    await permissions("grant", "vip", "acme:ann")
    expect(await registration("PUT", "vip", "ann")).toBe(403)
    expect((await permissions("list", "vip", "--json")).stdout.trimEnd().split("\n")).toEqual([
      '{"channel":"vip","principal":"acme:ann","right":"publish"}',
      '{"channel":"vip","principal":"acme:ivy","right":"register"}'
    ])
    const revoked = await permissions("revoke", "vip", "acme:ivy", "--register")
    expect(revoked.stdout).toMatch(/whoever is registered stays so until removed \(--remove\)\n$/)
    expect(await registration("PUT", "vip", "ivy")).toBe(403)
    expect(await acme.isRegistered("vip", "ivy")).toBe(true)
  })

  it("keeps who is registered until an operator removes the user", async () => {
    for (const user of ["zoe@example.org", "zac"]) {
      await permissions("grant", "vip", `acme:${user}`, "--register")
      expect(await registration("PUT", "vip", user)).toBe(202)
    }
    const remove = (principal: string) =>
      permissions("revoke", "vip", principal, "--register", "--remove")
    expect((await remove("acme:zoe@example.org")).stdout).toMatch(
      / is no longer registered on vip\n$/
    )
    expect(await acme.isRegistered("vip", "zoe@example.org")).toBe(false)
    expect(await acme.isRegistered("vip", "zac")).toBe(true)
    expect((await remove("acme:zoe@example.org")).stdout).toMatch(/ is not registered on vip\n$/)
    const audited = await verb("audit", "--user", "acme:zoe@example.org")
    expect(audited.stdout).toMatch(/^unregistered +\S+Z +operator +- +vip$/m)
    for (const [args, why] of [
      [["group:acme:staff", "--register", "--remove"], /--remove takes a user, not a group/],
      [["system.Everyone", "--register", "--remove"], /--remove takes a user, not a group/],
      [["acme:zac", "--remove"], /--remove goes with --register/]
    ] as const)
      expect(await permissions("revoke", "vip", ...args)).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(why)
      })
    expect(await acme.isRegistered("vip", "zac")).toBe(true)
  })

  it("is not one that no rule closes: there nobody is named to register", async () => {
    expect(await permissions("grant", "news", "acme:ann", "--register")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/news is open: .*BELLCAST_CHANNEL_REGISTER_PRINCIPALS="news="/)
    })
    expect((await permissions("grant", "orders-*", "acme:ann", "--register")).stderr).toMatch(
      /is a pattern.*BELLCAST_CHANNEL_REGISTER_PRINCIPALS="orders-\*=acme:ann"/
    )
  })
})
