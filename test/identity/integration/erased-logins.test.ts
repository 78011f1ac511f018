// The logins of a user go with the user: nothing in the bucket `cache` names an erased one.
import { assert, it } from "vitest"
import { until } from "#test/client.ts"
import { expiringOf, messagesOf } from "#test/erased.ts"
import { startIdentityProvider } from "#test/identity/provider.ts"
import { userIn } from "#test/identity/requests.ts"
import { startNats } from "#test/nats.ts"
import { connectAdmin } from "#test/nats-admin.ts"
import { startService } from "#test/service.ts"

const tokenOf = (sub: string) => `token-${Buffer.from(sub).toString("hex")}`

it("removes the verified credentials of erased users, and nobody else's", async () => {
  await using nats = await startNats()
  await using provider = await startIdentityProvider()
  await using service = await startService({
    natsUrl: nats.url,
    env: {
      BELLCAST_AUTH_POLICIES: "oauth",
      BELLCAST_AUTH_OAUTH_INTROSPECTION_URL: `${provider.url}/introspect`,
      BELLCAST_AUTH_OAUTH_CLIENT_ID: "bellcast",
      BELLCAST_AUTH_OAUTH_CLIENT_SECRET: "secret"
    }
  })
  await using admin = await connectAdmin(nats.url)
  const send = async (method: string, path: string, sub: string) => {
    const headers = { authorization: `Bearer ${tokenOf(sub)}` }
    const response = await fetch(`${service.url}${path}`, { method, headers })
    assert.isBelow(response.status, 300)
    return response
  }
  /** Logs in. Returns the id. */
  const enter = async (sub: string) => {
    provider.tokens.set(tokenOf(sub), { active: true, sub })
    const { id } = (await userIn(await send("GET", "/", sub)))!
    await send("PUT", "/channels/news/registration", sub)
    return id
  }
  const loginsOf = async (id: string) =>
    (await expiringOf(admin, [`"user":"${id.replace("oauth:", "")}"`])).map(
      ({ subject }) => subject
    )
  const ids = [await enter("bob"), await enter("ann"), await enter("anna@example.org")]
  for (const id of ids) {
    const [login] = await until(
      () => loginsOf(id),
      ({ length }) => length === 1
    )
    assert.match(login!, /^\$KV\.bellcast_cache\.verification\./)
  }
  const [bob, ...others] = ids
  for (const sub of ["ann", "anna@example.org"]) await send("DELETE", "/", sub)
  for (const id of others) {
    await until(
      async () => [...(await messagesOf(admin, [id])), ...(await loginsOf(id))],
      ({ length }) => length === 0
    )
  }
  assert.lengthOf(await loginsOf(bob!), 1)
}, 120_000)
