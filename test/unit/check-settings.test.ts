// Which settings are wrong, and what is said of each. That a start with wrong ones ends, and prints
// nothing else: test/integration/settings.test.ts.
import { Effect, Logger } from "effect"
import { expect, it } from "vitest"
import { policyKinds } from "#identity/settings.ts"
import { layerOf, readSource } from "#settings/source.ts"
import { secretEnvironment } from "#test/service.ts"
import { checkSettings } from "../../src/failed-start.ts"

/** The message of a start with these settings. */
const messageOf = async (
  env: Readonly<Record<string, string>>,
  args: ReadonlyArray<string> = []
): Promise<string> => {
  const right = { BELLCAST_CONFIG: "/dev/null", BELLCAST_AUTH_POLICIES: "basicauth" }
  const source = readSource({ ...right, ...env }, args)
  const failure = await Effect.runPromise(
    Effect.flip(checkSettings).pipe(Effect.provide(layerOf(source)))
  )
  return failure.message
}

it("numbers out of their bounds, and what could not stand in a URL, are named", async () => {
  const out = {
    BELLCAST_BACKOFF: "-1",
    BELLCAST_BATCH_MAX_REQUESTS: "1001",
    BELLCAST_HTTP_SCHEME: "gopher",
    BELLCAST_HTTP_HOST: "a b",
    // Without tls:// in BELLCAST_NATS_URL it has no use.
    BELLCAST_NATS_TLS_CA: "/ca.pem"
  }
  const message = await messageOf(out)
  for (const name of Object.keys(out))
    expect(message).toMatch(new RegExp(`^${name}: Expected `, "m"))
})

it("values that never match are named, and no part of a broken password is shown", async () => {
  const message = await messageOf({
    BELLCAST_NATS_URL: "nats://bell:p@hush/w%rd@127.0.0.1:4222",
    BELLCAST_PUSH_HOSTS: "push.example.org https://push.example.org/",
    BELLCAST_CHANNEL_WRITE_PRINCIPALS: "system.Authenticated,alice",
    BELLCAST_EOS: "soon"
  })
  expect(message).not.toMatch(/hush|w%rd/)
  expect(message.split("\n").slice(1)).toEqual([
    expect.stringMatching(/^BELLCAST_NATS_URL: Expected host:port or user:password@host:port, /),
    expect.stringMatching(
      /^BELLCAST_CHANNEL_WRITE_PRINCIPALS: "alice": a principal is <policy>:<id> /
    ),
    expect.stringMatching(
      /^BELLCAST_PUSH_HOSTS: "https:\/\/push\.example\.org.*": Expected a host, /
    ),
    "BELLCAST_EOS: Expected an ISO 8601 date"
  ])
})

it.each(["BELLCAST_USER_WRITE_PRINCIPALS", "BELLCAST_OPERATOR_PRINCIPALS"])(
  "the right of %s is never everybody's, in development neither",
  async (setting) => {
    for (const args of [[], ["--development"]])
      for (const principal of ["system.Authenticated", "system.Everyone", "system.x"])
        expect(await messageOf({ [setting]: principal }, args)).toMatch(
          new RegExp(`^${setting}: "${principal}": name users or groups: `, "m")
        )
  }
)

it("a secret that could be guessed is named, and not shown", async () => {
  for (const secret of ["x", "s3cr3t-of-thirty-one-bytes-only"])
    expect(await messageOf({ BELLCAST_USERID_HMAC_SECRET: secret })).toMatch(
      /^[^\n]*\nBELLCAST_USERID_HMAC_SECRET: Expected at least 32 bytes$/
    )
})

it("of a word with a mail address or a login only the place is shown", async () => {
  const message = await messageOf({
    BELLCAST_CHANNEL_WRITE_PRINCIPALS: "system.Authenticated anna@example.org",
    BELLCAST_PUSH_HOSTS: "https://anna:hush@push.example.org/"
  })
  expect(message).not.toMatch(/anna|hush/)
  expect(message).toMatch(/^BELLCAST_CHANNEL_WRITE_PRINCIPALS: item 2: a principal is <policy>:/m)
  expect(message).toMatch(/^BELLCAST_PUSH_HOSTS: item 1: Expected a host/m)
})

it("what is wrong with the secrets beside an existing NATS is named, too", async () => {
  const message = await messageOf({
    ...secretEnvironment,
    BELLCAST_NATS_URL: "nats://127.0.0.1:1",
    BELLCAST_VAPID_SUBJECT: "me",
    BELLCAST_BACKOFF: "soon"
  })
  expect(message).toMatch(/BELLCAST_BACKOFF: .*\nBELLCAST_VAPID_SUBJECT /)
})

it("a file that is not there is named", async () => {
  expect(await messageOf({ BELLCAST_CONFIG: "none.ini" })).toMatch(
    /\nnone\.ini: Cannot be read \(ENOENT\)$/
  )
})

it("lists that need a word are named when they have only blanks", async () => {
  const message = await messageOf({
    BELLCAST_AUTH_POLICIES: "openid signed",
    BELLCAST_AUTH_OPENID_ISSUER: "https://login.example.org",
    BELLCAST_AUTH_OPENID_AUDIENCE: "  ",
    BELLCAST_AUTH_SIGNED_SECRETS: "0123456789abcdef0123456789abcdef",
    BELLCAST_AUTH_SIGNED_AUDIENCE: " , "
  })
  for (const policy of ["OPENID", "SIGNED"])
    expect(message).toMatch(
      new RegExp(`^BELLCAST_AUTH_${policy}_AUDIENCE: Expected at least one word`, "m")
    )
})

it("what each policy lacks, and what contradicts itself there, is named at once", async () => {
  const message = await messageOf({
    BELLCAST_AUTH_POLICIES: "openid oauth signed proxy portier-staff",
    BELLCAST_AUTH_OPENID_ISSUER: "https://login.example.org",
    BELLCAST_AUTH_SIGNED_AUDIENCE: "bellcast",
    BELLCAST_AUTH_SIGNED_SECRETS: "hush",
    BELLCAST_AUTH_PROXY_SECRET: "hush",
    BELLCAST_AUTH_PORTIER_STAFF_BROKER_URL: "https://login.example.org"
  })
  expect(message).not.toMatch(/hush/)
  expect(message.split("\n").slice(1)).toEqual([
    "BELLCAST_AUTH_OPENID_AUDIENCE: Must be set",
    "BELLCAST_AUTH_OAUTH_INTROSPECTION_URL, BELLCAST_AUTH_OAUTH_VERIFY_URL: Expected one of them",
    "BELLCAST_AUTH_SIGNED_SECRETS: Expected at least 32 bytes for each",
    "BELLCAST_AUTH_PROXY_SECRET: Expected at least 32 bytes",
    expect.stringMatching(/^BELLCAST_AUTH_POLICIES: portier-staff: there is one policy portier/),
    "BELLCAST_TRUSTED_PROXIES: Expected the address of the proxy of the policy proxy"
  ])
})

it("names of policies whose users others have already are refused", async () => {
  for (const name of ["group", "nats", "import"])
    expect(await messageOf({ BELLCAST_AUTH_POLICIES: `${name}=./own.mjs` })).toMatch(
      new RegExp(`BELLCAST_AUTH_POLICIES.*none of .*${name}`)
    )
})

it("words that cannot be a policy are named", async () => {
  const messageWith = (policies: string) => messageOf({ BELLCAST_AUTH_POLICIES: policies })
  expect(await messageWith("basicauth,system,acme=policy.mjs,Basic,saml")).toMatch(
    /BELLCAST_AUTH_POLICIES: .*system.*a policy's name has letters a to z/
  )
  expect(await messageWith("acme=./missing.mjs basicauth basicauth")).toMatch(/stands there twice/)
})

it("settings of policies that are off are a warning, and say of which", async () => {
  const isOff = "which is off: BELLCAST_AUTH_POLICIES does not name it"
  const warnings: Array<string> = []
  const logger = Logger.make<unknown, void>(({ message }) => void warnings.push(String(message)))
  const source = readSource({
    BELLCAST_CONFIG: "/dev/null",
    BELLCAST_AUTH_POLICIES: "openid",
    BELLCAST_AUTH_OPENID_ISSUER: "https://login.example.org",
    BELLCAST_AUTH_OPENID_AUDIENCE: "bellcast",
    BELLCAST_AUTH_OAUTH_CLIENT_SECRET: "hush",
    BELLCAST_AUTH_OAUTH_STAFF_REQUIRED_SCOPES: "push",
    BELLCAST_AUTH_OPENID_AUDIENC: "bellcast"
  })
  await Effect.runPromise(
    checkSettings.pipe(Effect.provide([layerOf(source), Logger.layer([logger])]))
  )
  expect(warnings).toEqual([
    `BELLCAST_AUTH_OAUTH_CLIENT_SECRET: a setting of the policy oauth, ${isOff}`,
    `BELLCAST_AUTH_OAUTH_STAFF_REQUIRED_SCOPES: a setting of the policy oauth-staff, ${isOff}`,
    "BELLCAST_AUTH_OPENID_AUDIENC: no such setting, " +
      "perhaps BELLCAST_AUTH_OPENID_AUDIENCE is meant"
  ])
})

it("a start without a policy names every kind of login", async () => {
  const message = await messageOf({ BELLCAST_AUTH_POLICIES: "" })
  expect(message).toMatch(
    /BELLCAST_AUTH_POLICIES: none is on, so nobody can be a user: .*BELLCAST_AUTH_POLICIES=/
  )
  for (const kind of policyKinds) expect(message).toMatch(new RegExp(`[ "]${kind}\\b`))
})

it("an origin of the console is one, is safe, and is none whose pages may call", async () => {
  const messageWith = (origin: string) =>
    messageOf({
      BELLCAST_AUTH_POLICIES: "basicauth",
      BELLCAST_CORS_ORIGINS: "https://www.example.org https://*.example.net",
      BELLCAST_CONSOLE_ORIGIN: origin
    })
  for (const wrong of [
    ...["desk.example.org", "http://desk.example.org", "https://*.example.org", "null"],
    ...["https://desk.example.org/desk", "https://a.example.org https://b.example.org"]
  ])
    expect(await messageWith(wrong), wrong).toMatch(/BELLCAST_CONSOLE_ORIGIN: Expected one origin/)
  expect(await messageWith("HTTPS://www.example.org:443/")).toMatch(
    /BELLCAST_CONSOLE_ORIGIN: Expected a host of the console's own/
  )
})
