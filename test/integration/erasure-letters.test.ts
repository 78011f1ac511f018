// Letters to an erased user alone, drafts and logins go, also of a user of whom LOG has nothing
// else; and every push of a letter has an end before the letter goes.
import { jetstream } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, publishAt, until } from "../support/client.ts"
import { expiringOf, messagesOf } from "../support/erased.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { type Service, secretEnvironment, startService } from "../support/service.ts"
import { inMillis } from "../support/times.ts"
import { idOf, tokenOf } from "../support/users.ts"

const needle = "nEEdle0fAPerson"
const isOk = ({ status }: { readonly status: number }) => status >= 200 && status < 300

let nats: TestNats
let push: PushService
let service: Service
let admin: NatsAdmin

beforeAll(async () => {
  nats = await startNats()
  push = await startPushService()
  service = await startService({
    natsUrl: nats.url,
    env: {
      BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher"),
      BELLCAST_LOG_REQUESTS: "false",
      BELLCAST_CHANGES_PER_USER_PER_HOUR_MAX: "5",
      BELLCAST_RETRY_BASE_MILLIS: "6000"
    }
  })
  admin = await connectAdmin(nats.url)
}, 120_000)
afterAll(async () => {
  for (const each of [admin, service, push, nats]) await each?.[Symbol.asyncDispose]()
})

const request = (method: string, path: string, user: string, body?: unknown) =>
  until(() => call(service.url, method, path, user, body), isOk)

/** The last message of LOG on a subject. */
const lastOn = (subject: string) =>
  admin.jsm.streams.getMessage("BELLCAST_LOG", { last_by_subj: subject }).catch(() => null)

const erased = (user: string) =>
  until(
    () => lastOn(`bellcast.evt.erased.${tokenOf(user)}`),
    (fact) => fact !== null,
    90_000
  )

const publishTo = (user: string, more: object = {}) =>
  publishAt(service.url, "/broadcasts", {
    data: { n: needle },
    to: { users: [idOf(user)] },
    ...more
  })

const draftFor = (user: string, id: string) =>
  request("PUT", `/drafts/${id}`, "publisher", {
    data: { data: { n: needle }, to: { users: [idOf(user)] } }
  })

/** Logs a user in, as a policy with sessions does. */
const enter = (user: string, key: string) => {
  const name = idOf(user).slice(idOf(user).indexOf(":") + 1)
  const entry = { v: 1, until: Date.now() + 3_600_000, user: name, groups: [] }
  return jetstream(admin.nc).publish(`$KV.bellcast_cache.session.${key}`, JSON.stringify(entry))
}
const loginsOf = (user: string) =>
  expiringOf(admin, [`"user":"${idOf(user).slice(idOf(user).indexOf(":") + 1)}"`])

const nothingLeft = () =>
  until(
    () => messagesOf(admin, [needle]),
    (found) => found.length === 0
  )

describe("an erasure of a user of whom LOG has nothing else", { timeout: 120_000 }, () => {
  it("takes letters, drafts and logins along where the user asks for it", async () => {
    const letter = await publishTo("fay", { at: inMillis(3_600_000) })
    await until(
      () => lastOn(`bellcast.evt.state.${letter}`),
      (change) => change !== null
    )
    await draftFor("fay", "for-fay")
    await enter("fay", "ofFay")
    await enter("bob", "ofBob")
    await request("DELETE", "/", "fay")
    await erased("fay")
    await nothingLeft()
    assert.deepEqual(await loginsOf("fay"), [])
    assert.lengthOf(await loginsOf("bob"), 1)
    // A process that was not connected still learns that the letter does not start.
    const change = await lastOn(`bellcast.evt.state.${letter}`)
    assert.equal(change?.header.get("Bellcast-Type"), "broadcast.cancelled/1")
  })

  it("takes them along where an operator knows the pseudonym alone", async () => {
    await draftFor("gus", "for-gus")
    await enter("gus", "ofGus")
    const args = ["user", "erase", tokenOf("gus"), "--nats", nats.url]
    const { code, stderr } = await runCli(args, secretEnvironment)
    assert.deepEqual([code, stderr], [0, ""])
    await nothingLeft()
    assert.deepEqual(await loginsOf("gus"), [])
  })

  it("counts as a change, so that nobody fills LOG with erasures", async () => {
    const statuses: Array<number> = []
    for (let n = 0; n < 6; n++) {
      statuses.push((await call(service.url, "DELETE", "/", "nobody")).status)
      // One that is under way would be that of the next request, too.
      await until(
        () => lastOn(`bellcast.cmd.erase.${tokenOf("nobody")}`),
        (command) => command === null
      )
    }
    assert.deepEqual(statuses, [202, 202, 202, 202, 202, 429])
  })
})

describe("a letter to an erased user", { timeout: 120_000 }, () => {
  it("goes once its pushes have ended, and their counts stay", async () => {
    const agent = push.subscribe({ script: ["503", "201"] })
    await request("POST", "/subscriptions", "hal", { data: agent.subscription })
    const letter = await publishTo("hal")
    await until(
      () => call(service.url, "GET", `/broadcasts/${letter}`, "publisher"),
      ({ body }) => body.data?.retrying === 1
    )
    await request("DELETE", "/", "hal")
    const fact = await erased("hal")
    await nothingLeft()
    assert.lengthOf(agent.attempts, 1)
    const end = await until(
      () => lastOn(`bellcast.evt.finished.=direct.${letter}`),
      (fact) => fact !== null
    )
    assert.isBelow(end!.seq, fact!.seq, "the counts are final before the letter goes")
    const { broadcast, cancelled, gone } = JSON.parse(end!.string())
    assert.deepEqual([broadcast, (cancelled ?? 0) + (gone ?? 0)], [Number(letter), 1])
    await until(
      () =>
        admin.jsm.streams
          .getMessage("KV_bellcast_broadcasts", {
            last_by_subj: `$KV.bellcast_broadcasts.${letter}`
          })
          .catch(() => null),
      (entry) => entry === null || (entry.header.get("KV-Operation") ?? "") !== ""
    )
  })

  it("goes with all its changes, however many", async () => {
    const letter = Number(await publishTo("ida", { at: inMillis(3_600_000) }))
    const subject = `bellcast.evt.state.${letter}`
    const first = await until(
      () => lastOn(subject),
      (change) => change !== null
    )
    const { schedule } = JSON.parse(first!.string())
    const typed = headers()
    typed.set("Bellcast-Type", "broadcast.changed/1")
    const base = { broadcast: letter, channel: "=direct", run: 0, by: "publisher", at: 1, schedule }
    for (let n = 0; n < 502; n++) {
      const body = JSON.stringify({ ...base, data: { n: `${needle} ${n}` } })
      await jetstream(admin.nc).publish(subject, body, { headers: typed })
    }
    await request("DELETE", "/", "ida")
    await erased("ida")
    await nothingLeft()
  })
})
