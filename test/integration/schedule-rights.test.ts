// Rights to change what a scheduled broadcast says: those of now, not those of its acceptance.
// Whoever published it may always stop it, and change its start and its rate.
import { assert, it } from "vitest"
import { broadcastPath, changeState } from "../support/broadcast-states.ts"
import { type Answer, call, publishAt } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { createToken, runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"
import { idOf } from "../support/users.ts"

const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString()
const at = inHours(1)
const changesOfData: ReadonlyArray<object> = [{ data: { n: 2 } }, { data_by_locale: { de: {} } }]
const changes = [{ at: inHours(2) }, { rate: 9 }, ...changesOfData]
const users = [idOf("anna")]

const patch = (url: string, id: string, data: object, headers?: Record<string, string>) =>
  call(url, "PATCH", broadcastPath(id), headers ? undefined : "publisher", { data }, headers)

const resultOf = ({ body, status }: Answer) => (status === 200 ? 200 : [status, body.errno])

it("a publisher who lost a right changes a broadcast, but not its data", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats()
  const env = {
    BELLCAST_CHANNEL_WRITE_PRINCIPALS: `other=${idOf("nobody")}`,
    BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher")
  }
  await using service = await startService({ natsUrl: nats.url, env })
  // A gateway with later settings, without the right to name users.
  const later = { ...env, BELLCAST_USER_WRITE_PRINCIPALS: "" }
  await using strict = await startService({ natsUrl: nats.url, roles: "gateway", env: later })
  const permit = async (verb: string, channel: string) => {
    const args = ["permissions", verb, channel, idOf("publisher"), "--nats", nats.url]
    const { code, stderr } = await runCli(args)
    assert.equal(code, 0, stderr)
  }
  for (const channel of ["news", "sport"]) await permit("grant", channel)
  const to = { channels: ["news", "sport"] }
  const ids = [
    await publishAt(service.url, "/channels/sport", { data: { n: 1 }, at }),
    await publishAt(service.url, "/broadcasts", { data: { n: 1 }, at, to })
  ]
  const named = await publishAt(service.url, "/broadcasts", { data: { n: 1 }, at, to: { users } })
  for (const id of [...ids, named])
    for (const data of changes) assert.equal(resultOf(await patch(service.url, id, data)), 200)
  await permit("revoke", "sport")
  for (const [url, id] of [...ids.map((id) => [service.url, id] as const), [strict.url, named]]) {
    const before = (await call(url!, "GET", broadcastPath(id!), "publisher")).body.data
    for (const data of changesOfData)
      assert.deepEqual(resultOf(await patch(url!, id!, data)), [403, 121], JSON.stringify(data))
    const { body } = await call(url!, "GET", broadcastPath(id!), "publisher")
    assert.deepEqual(body.data, before)
    for (const data of [{ at: inHours(3) }, { rate: 8 }])
      assert.equal(resultOf(await patch(url!, id!, data)), 200, JSON.stringify(data))
    await changeState(url!, id!, "cancelled")
  }
})

it("a token needs each right that the broadcast needs", { timeout: 60_000 }, async () => {
  await using nats = await startNats()
  const env = {
    BELLCAST_AUTH_POLICIES: "basicauth token",
    BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher")
  }
  await using service = await startService({ natsUrl: nats.url, env })
  const make = async (name: string, ...args: ReadonlyArray<string>) => {
    const { token } = await createToken(nats.url, name, ...args)
    return { authorization: `Bearer ${token}` }
  }
  const tokens = [
    await make("channels", "--channel", "news"),
    await make("users", "--users"),
    await make("both", "--users", "--channel", "news"),
    await make("operator", "--operator")
  ]
  const hidden = [404, 110]
  const refused = [403, 121]
  const audiences: ReadonlyArray<readonly [to: object, expected: ReadonlyArray<unknown>]> = [
    [{ channels: ["news"] }, [200, hidden, 200, refused]],
    [{ channels: ["news", "other"] }, [hidden, hidden, hidden, refused]],
    [{ users }, [hidden, 200, 200, refused]],
    [{ channels: ["news"], users }, [hidden, hidden, 200, refused]],
    [{ channels: ["news"], except_users: users }, [hidden, hidden, 200, refused]]
  ]
  for (const [to, expected] of audiences) {
    const id = await publishAt(service.url, "/broadcasts", { data: { n: 1 }, at, to })
    for (const data of changes)
      for (const [i, token] of tokens.entries()) {
        const result = resultOf(await patch(service.url, id, data, token))
        const isOperators = i === 3 && !changesOfData.includes(data)
        const wanted = isOperators ? 200 : expected[i]
        assert.deepEqual(result, wanted, `${JSON.stringify([to, data])} by ${i}`)
      }
  }
})
