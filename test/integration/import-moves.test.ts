// A subscription that was imported without its user moves to whoever stores it, together with its
// registrations: by two requests the browser comes to the key of this service, and misses nothing.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { endpointHash } from "#domain/subscription/owners.ts"
import { call, channelsOf, finished, publish, registrationsSeen, until } from "../support/client.ts"
import {
  formerBrowser,
  formerKeys,
  formerPair,
  importAll,
  importLines
} from "../support/imports.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { type Service, startService, vapid } from "../support/service.ts"
import type { UserAgent } from "../support/user-agent.ts"
import { idOf } from "../support/users.ts"

let nats: TestNats
let push: PushService
let service: Service

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  push = await startPushService()
  const rights = {
    BELLCAST_CHANNEL_REGISTER_PRINCIPALS: "closed-*=",
    BELLCAST_REGISTRATIONS_PER_USER_MAX: "3"
  }
  service = await startService({ natsUrl: nats.url, env: { ...formerKeys, ...rights } })
}, 60_000)
afterAll(async () => {
  for (const each of [service, push, nats]) await each?.[Symbol.asyncDispose]()
})

const browser = () => formerBrowser(push)
const ofFormer = ({ subscription }: UserAgent) => ({
  ...subscription,
  vapid_public_key: formerPair.publicKey
})
const post = (user: string, data: object, more: object = {}) =>
  call(service.url, "POST", "/subscriptions", user, { data, ...more })
const joins = (channel: string, user: string) =>
  call(service.url, "PUT", `/channels/${channel}/registration`, user)
const imports = (agents: ReadonlyArray<UserAgent>, ...channels: ReadonlyArray<string>) =>
  importAll(
    nats.url,
    agents.map(({ subscription }) => subscription),
    ...channels.flatMap((channel) => ["--channel", channel])
  )
/** Publishes a number, and returns the counts once all is sent. */
const sent = async (channel: string, n: number) =>
  finished(service.url, channel, await publish(service.url, channel, { n }))
const numbers = ({ received }: UserAgent) => received.map(({ text }) => JSON.parse(text).n)

describe("an imported subscription", { timeout: 60_000 }, () => {
  it("comes to its user and to the new key by two requests, and misses no broadcast", async () => {
    const [old, present] = [browser(), push.subscribe({ applicationServerKey: vapid.publicKey })]
    await imports([old], "two", "steps")
    await sent("two", 1)
    assert.equal((await post("ann", ofFormer(old))).status, 201)
    assert.sameMembers([...(await channelsOf(service.url, "ann"))], ["two", "steps"])
    assert.deepInclude(await sent("two", 2), { accepted: 1, delivered: 1 })
    const data = { ...present.subscription, vapid_public_key: vapid.publicKey }
    const replaces = endpointHash(old.subscription.endpoint)
    assert.equal((await post("ann", data, { replaces })).status, 201)
    assert.deepInclude(await sent("two", 3), { accepted: 1, delivered: 1 })
    assert.deepInclude(await sent("steps", 4), { accepted: 1, delivered: 1 })
    assert.deepEqual(
      [numbers(old), numbers(present)],
      [
        [1, 2],
        [3, 4]
      ]
    )
    assert.deepEqual(push.faults, [])
    // The stand-in is gone.
    await until(
      () => registrationsSeen(service.url, "two", "ann"),
      (count) => count === 1
    )
  })

  it("keeps the key that it was made with, where the request names none", async () => {
    const agent = browser()
    await imports([agent], "key")
    const id = endpointHash(agent.subscription.endpoint)
    const data = agent.subscription
    const put = await call(service.url, "PUT", `/subscriptions/${id}`, "bob", { data })
    assert.equal(put.status, 201)
    assert.deepInclude(await sent("key", 1), { accepted: 1, delivered: 1 })
    assert.deepEqual(push.faults, [])
  })

  it("stays as it is for a request with other keys", async () => {
    const agent = browser()
    await imports([agent], "keys")
    const { endpoint } = agent.subscription
    const { status, body } = await post("cid", { ...browser().subscription, endpoint })
    assert.deepEqual([status, body.errno], [409, 123])
    assert.deepEqual(await channelsOf(service.url, "cid"), [])
    assert.deepInclude(await sent("keys", 1), { accepted: 1, delivered: 1 })
  })

  it("brings its channels to a user who holds as many as allowed, closed ones, too", async () => {
    const agent = browser()
    await imports([agent], "closed-club", "open")
    for (const channel of ["one", "two-b", "open"]) await joins(channel, "dan")
    assert.equal((await joins("four", "dan")).status, 429)
    assert.equal((await post("dan", ofFormer(agent))).status, 201)
    const channels = ["one", "two-b", "open", "closed-club"]
    assert.sameMembers([...(await channelsOf(service.url, "dan"))], channels)
    assert.deepInclude(await sent("closed-club", 1), { accepted: 1, delivered: 1 })
  })

  it("moves on without the channels of a real user", async () => {
    const agent = browser()
    await imports([agent], "once")
    assert.equal((await post("eve", ofFormer(agent))).status, 201)
    assert.equal((await post("fay", ofFormer(agent))).status, 201)
    assert.deepEqual(await channelsOf(service.url, "fay"), [])
    assert.deepEqual(await channelsOf(service.url, "eve"), ["once"])
  })

  it("has one user when several store it at the same moment, and its stand-in ends", async () => {
    const agents = Array.from({ length: 12 }, browser)
    await imports(agents, "race")
    const users = ["gus", "hal", "ida"]
    const all = agents.flatMap((agent) => users.map((user) => post(user, ofFormer(agent))))
    for (const { status } of await Promise.all(all)) assert.equal(status, 201)
    const lists = await Promise.all(
      users.map(async (user) => (await call(service.url, "GET", "/subscriptions", user)).body.data)
    )
    const endpoints = agents.map(({ subscription }) => subscription.endpoint)
    assert.sameMembers(
      lists.flat().map(({ endpoint }) => endpoint),
      endpoints
    )
    const channels = await Promise.all(users.map((user) => channelsOf(service.url, user)))
    const members = users.filter((_, i) => channels[i]!.includes("race"))
    await until(
      () => registrationsSeen(service.url, "race", members[0]!),
      (count) => count === members.length
    )
    await sent("race", 1)
    assert.deepEqual(
      agents.map((agent) => numbers(agent)),
      agents.map(() => [1])
    )
  })

  it("comes to the user whom a later import names, from a stand-in only", async () => {
    const agent = browser()
    await imports([agent], "unnamed", "closed-late")
    const names = (user: string, more: object = {}) =>
      importLines(nats.url, [{ ...agent.subscription, user: idOf(user), ...more }])
    const held = "0 of 1 lines were stored\n1 belong to another user\n"
    const { keys } = browser().subscription
    assert.equal((await names("kim", { keys })).stdout, held)
    assert.deepEqual(await channelsOf(service.url, "kim"), [])
    assert.equal((await names("kim", { channels: ["named"] })).stdout, "1 of 1 lines were stored\n")
    const channels = ["unnamed", "closed-late", "named"]
    assert.sameMembers([...(await channelsOf(service.url, "kim"))], channels)
    for (const channel of channels)
      assert.deepInclude(await sent(channel, 1), { accepted: 1, delivered: 1 })
    for (const channel of channels)
      await until(
        () => registrationsSeen(service.url, channel, "kim"),
        (count) => count === 1
      )
    assert.equal((await names("lou")).stdout, held)
    assert.lengthOf((await call(service.url, "GET", "/subscriptions", "kim")).body.data, 1)
  })

  it("is not taken back from its user by another import, nor after its user left it", async () => {
    const agent = browser()
    await imports([agent], "again")
    assert.equal((await post("joe", ofFormer(agent))).status, 201)
    const again = () => importLines(nats.url, [agent.subscription], "--channel", "again")
    const taken = /^0 of 1 lines were stored\n1 were removed, taken by a user or gone/
    assert.match((await again()).stdout, taken)
    assert.equal((await call(service.url, "DELETE", "/subscriptions", "joe")).status, 200)
    assert.match((await again()).stdout, taken)
    assert.deepInclude(await sent("again", 1), { accepted: 0 })
  })
})
