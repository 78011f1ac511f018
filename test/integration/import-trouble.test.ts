// An import that cannot do all it should: says how far it came, and leaves nothing behind.
import { Effect } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { endpointHash } from "#domain/subscription/owners.ts"
import { standInOf } from "#domain/subscription/stand-in.ts"
import { pseudonyms } from "#identity/pseudonym.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { call, registrationsSeen, until } from "../support/client.ts"
import { formerBrowser, formerKeys, importAll, importLines } from "../support/imports.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { secretEnvironment, startService } from "../support/service.ts"

let nats: TestNats
let push: PushService

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  push = await startPushService()
}, 60_000)
afterAll(async () => {
  for (const each of [push, nats]) await each?.[Symbol.asyncDispose]()
})

const start = () => startService({ natsUrl: nats.url, env: formerKeys })
const subscriptions = (count: number) =>
  Array.from({ length: count }, () => formerBrowser(push).subscription)

describe("an import", { timeout: 60_000 }, () => {
  it("prints what it did before it failed", async () => {
    const [a, b, c] = subscriptions(3)
    {
      await using _service = await start()
      await importAll(nats.url, [a, b])
    }
    const { code, stderr, stdout } = await importLines(nats.url, [a, b, c])
    assert.include(stderr, "no projection runs")
    assert.equal(code, 1)
    const open = "1 were not finished: repeat the import"
    assert.equal(stdout, `0 of 3 lines were stored\n2 were there already\n${open}\n`)
  })

  it("ends the registrations of a stand-in whose subscription a user has", async () => {
    await using service = await start()
    const [data] = subscriptions(1)
    const standIn = standInOf(endpointHash(data!.endpoint))
    const token = pseudonyms(secretEnvironment.BELLCAST_USERID_HMAC_SECRET)(standIn)
    // The state after an import that was killed, or overtaken by the user, between its two steps.
    const began = {
      subject: subjects.registration(channelToken("lost"), token),
      type: "registration.put/1",
      body: { user: standIn, at: 1 }
    } as const
    await Effect.runPromise(
      Effect.flatMap(EventLog, (log) => log.append("log", began)).pipe(
        Effect.provide(natsLayer({ url: nats.url, name: "test" }))
      )
    )
    assert.equal((await call(service.url, "POST", "/subscriptions", "ann", { data })).status, 201)
    await call(service.url, "PUT", "/channels/lost/registration", "ann")
    const seen = () => registrationsSeen(service.url, "lost", "ann")
    assert.equal(await seen(), 2)
    const imports = (...args: ReadonlyArray<string>) =>
      importLines(nats.url, [data], "--channel", "lost", "--channel", "other", ...args)
    const held = "1 belong to another user\n"
    assert.equal((await imports("--dry-run")).stdout, `0 of 1 lines would be stored\n${held}`)
    assert.equal(await seen(), 2)
    assert.equal((await imports()).stdout, `0 of 1 lines were stored\n${held}`)
    await until(seen, (count) => count === 1)
  })

  it("fails where OneSignal's rows of browsers have no keys", async () => {
    await using _service = await start()
    const row = ({ endpoint }: { endpoint: string }) => ({ identifier: endpoint, web_auth: "" })
    const app = { identifier: "a1b2c3", invalid_identifier: "f" }
    const [one, other, good] = subscriptions(3)
    const rows = [row(one!), row(other!), { ...row(other!), invalid_identifier: "t" }, app]
    const { code, stderr, stdout } = await importLines(nats.url, rows)
    const lack = "2 lack web_auth or web_p256"
    const rest = "2 are no Web Push, or unsubscribed"
    assert.equal(stdout, `0 of 4 lines were stored\n${rest}\n${lack}\n`)
    assert.include(stderr, "extra_fields")
    assert.equal(code, 1)
    const { code: some, stdout: said } = await importLines(nats.url, [good, ...rows])
    assert.equal(said, `1 of 5 lines were stored\n${rest}\n${lack}\n`)
    assert.equal(some, 0)
  })
})
