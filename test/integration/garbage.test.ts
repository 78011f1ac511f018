// Garbage straight onto NATS, from whoever may write there: on every subject, of every shape.
// Nothing stands still, what is refused is recorded, and the log stays readable.
import { jetstream } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, finished, join, publish, until } from "../support/client.ts"
import { garbage } from "../support/garbage.ts"
import { userOf } from "../support/history-commands.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { type Service, startService } from "../support/service.ts"

const typed = (type: string) => {
  const made = headers()
  made.set("Bellcast-Type", type)
  return made
}

describe("garbage on NATS", { timeout: 120_000 }, () => {
  let nats: Awaited<ReturnType<typeof startNats>>
  let push: Awaited<ReturnType<typeof startPushService>>
  let service: Service
  let admin: NatsAdmin
  beforeAll(async () => {
    nats = await startNats({ syncAlways: false })
    push = await startPushService()
    service = await startService({ natsUrl: nats.url })
    admin = await connectAdmin(nats.url)
  })
  afterAll(async () => {
    await admin?.[Symbol.asyncDispose]()
    await service?.[Symbol.asyncDispose]()
    await push?.[Symbol.asyncDispose]()
    await nats?.[Symbol.asyncDispose]()
  })

  const send = (subject: string, type: string | undefined, body: unknown) =>
    jetstream(admin.nc).publish(
      subject,
      Buffer.isBuffer(body) ? body : JSON.stringify(body),
      type === undefined ? {} : { headers: typed(type) }
    )
  const rejection = async (seq: number) =>
    (await until(
      () =>
        admin.jsm.streams.getMessage("BELLCAST_LOG", {
          last_by_subj: `bellcast.evt.rejected.${seq}`
        }),
      (found) => found !== null
    ))!
  const refusal = async (seq: number) => (await rejection(seq)).json<{ reason: string }>().reason
  /** Where the commands of the user stand who wrote last. */
  const lastSubject = async () =>
    (await admin.jsm.streams.getMessage("BELLCAST_LOG", {
      last_by_subj: "bellcast.cmd.subscription.>"
    }))!.subject
  const user = (agent: { readonly subscription: unknown }, name: string) =>
    call(service.url, "POST", "/subscriptions", name, { data: agent.subscription })

  it("on every subject blocks nothing, is recorded as rejected, floods no log", async () => {
    const agent = push.subscribe()
    await join([service.url], "news", [agent.subscription])
    const before = service.output().length
    const refused: Array<number> = []
    for (let round = 0; round < 3; round++) {
      for (const [subject, type, body] of garbage) {
        const { seq } = await send(subject, type, body)
        if (subject.startsWith("bellcast.cmd.")) refused.push(seq)
      }
    }
    for (const body of ["null", "7", "{}", '{"log":1e300}', '{"log":9,"floor":null}']) {
      for (const told of ["applied", "push-service"]) admin.nc.publish(`bellcast.sys.${told}`, body)
    }
    const broadcast = await publish(service.url, "news", { still: "here" })
    assert.deepInclude(await finished(service.url, "news", broadcast), {
      accepted: 1,
      delivered: 1
    })
    for (const seq of refused) assert.isString(await refusal(seq))
    for (const [durable, held] of [
      ["deliver", 0],
      ["limited", 0],
      ["retry", 3]
    ] as const) {
      await until(
        () => admin.jsm.consumers.info("BELLCAST_WORK", durable),
        ({ num_ack_pending, num_pending }) => num_pending === 0 && num_ack_pending === held
      )
    }
    assert.notInclude(service.output(), "was delivered many times")
    const lines = service.output().slice(before).split("\n")
    assert.isBelow(lines.filter((line) => /"level":(?:[4-6]0)/.test(line)).length, 40)
    assert.notInclude(service.output(), "stopped and starts again")
  })

  it("on a user's own subject does not keep the user from writing", async () => {
    assert.equal((await user(push.subscribe(), "ann")).status, 201)
    const subject = await lastSubject()
    const token = subject.split(".").at(-1)!
    for (const type of ["registration.put/1", "made/up", "subscription.put/1"])
      await send(subject, type, { user: "x", at: 1 })
    const { seq } = await send(subject, "subscription.delete/1", {
      user: "ann",
      removed: [{ id: "a", lastModified: Number.MAX_SAFE_INTEGER }]
    })
    assert.include(await refusal(seq), "subscription.delete/1")
    const fact = await rejection(seq)
    assert.equal(fact.header.get("Bellcast-Type"), "command.rejected/1")
    assert.deepInclude(fact.json<Record<string, unknown>>(), { command: seq, subject })
    assert.equal((await user(push.subscribe(), "ann")).status, 201)
    assert.lengthOf((await call(service.url, "GET", "/subscriptions", "ann")).body.data, 2)
    assert.equal((await call(service.url, "PUT", "/channels/own/registration", "ann")).status, 202)
    await send(`bellcast.cmd.registration.own.${token}`, "made/up", {})
    assert.equal(
      (await call(service.url, "DELETE", "/channels/own/registration", "ann")).status,
      202
    )
    assert.equal((await call(service.url, "PUT", "/channels/own/registration", "ann")).status, 202)
    assert.equal(
      (await call(service.url, "GET", "/channels/own", "ann")).body.data.registrations,
      1
    )
  })

  it("in the place of an endpoint holds up nobody else, and is suspended", async () => {
    const agent = push.subscribe()
    assert.equal((await user(agent, "eve")).status, 201)
    const subject = await lastSubject()
    assert.equal((await call(service.url, "PUT", "/channels/odd/registration", "eve")).status, 202)
    const endpoints = [
      "",
      "https://",
      "https://a b/x",
      "https://[zz/x",
      "http://%zz/",
      "https://x:99999/"
    ]
    for (const [i, endpoint] of endpoints.entries()) {
      const data = { ...agent.subscription, endpoint }
      await send(subject, "subscription.put/1", {
        user: "eve",
        id: `odd${i}`,
        data,
        lastModified: Date.now() + i
      })
    }
    const counts = { accepted: 1 + endpoints.length, delivered: 1, dead: endpoints.length }
    assert.deepInclude(
      await finished(service.url, "odd", await publish(service.url, "odd", { n: 1 })),
      counts
    )
    assert.deepInclude(
      await finished(service.url, "odd", await publish(service.url, "odd", { n: 2 })),
      { accepted: 1, delivered: 1 }
    )
    assert.lengthOf(agent.received, 2)
  })

  it("in the place of keys: the subscription is removed, and the log says why", async () => {
    const before = push.requests
    const { subscription } = push.subscribe()
    // The gateway would refuse it: nothing can be encrypted for these keys.
    const keys = {
      auth: Buffer.alloc(16).toString("base64url"),
      p256dh: Buffer.alloc(65, 4).toString("base64url")
    }
    const data = { endpoint: subscription.endpoint, keys }
    const subject = `bellcast.cmd.subscription.${userOf(1)}`
    await send(subject, "subscription.put/1", { user: "u", id: "a", data, lastModified: 1 })
    const place = `bellcast.cmd.registration.keys.${userOf(1)}`
    await send(place, "registration.put/1", { user: "u", at: 1 })
    const broadcast = await publish(service.url, "keys", { n: 1 })
    assert.deepInclude(await finished(service.url, "keys", broadcast), { accepted: 1, gone: 1 })
    const removal = await until(
      () => admin.jsm.streams.getMessage("BELLCAST_LOG", { last_by_subj: subject }),
      (found) => found?.header.get("Bellcast-Type") === "subscription.gone/1"
    )
    assert.deepInclude(removal?.json<Record<string, unknown>>(), {
      cause: "invalid-key",
      status: 0
    })
    assert.equal(push.requests, before)
  })

  it("that makes a user value too large is rejected; the user can go on", async () => {
    const agent = push.subscribe()
    assert.equal((await user(agent, "bob")).status, 201)
    const subject = await lastSubject()
    const put = (n: number) =>
      send(subject, "subscription.put/1", {
        ...{ user: "bob", id: `big${n}`, lastModified: Date.now() },
        data: {
          ...agent.subscription,
          endpoint: `${agent.subscription.endpoint}${n}`,
          text: "\u20ac".repeat(10_000)
        }
      })
    let last = 0
    for (let n = 0; n < 45; n++) last = (await put(n)).seq
    assert.include(await refusal(last), "larger than")
    const answer = await user(push.subscribe(), "bob")
    assert.deepInclude(answer.body, { code: 413, error_code: "list-too-large" })
    const { body } = await call(service.url, "GET", "/subscriptions", "bob")
    assert.isAbove(body.data.length, 20)
    assert.equal(
      (await call(service.url, "DELETE", `/subscriptions/${body.data.at(-1).id}`, "bob")).status,
      200
    )
    assert.equal((await call(service.url, "DELETE", "/subscriptions", "bob")).status, 200)
    assert.equal((await user(push.subscribe(), "bob")).status, 201)
    assert.notInclude(service.output(), "stopped and starts again")
  })
})
