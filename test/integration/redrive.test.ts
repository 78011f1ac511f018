// A redriven broadcast reaches the users that it did not reach before, nobody else, and nobody
// twice.
import { jetstream } from "@nats-io/jetstream"
import { connect, headers } from "@nats-io/transport-node"
import { assert, describe, it } from "vitest"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"

const redrive = (natsUrl: string, broadcast: string, ...args: ReadonlyArray<string>) =>
  runCli(["redrive", broadcast, ...args, "--nats", natsUrl])

const idIn = (text: string) => / as broadcast (\d+)/.exec(text)?.[1] ?? assert.fail(text)

describe("a broadcast that did not reach everybody", { timeout: 60_000 }, () => {
  it("is sent again to exactly those, with all it said, and only once", async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using service = await startService({ natsUrl: nats.url })
    const scripts = [
      ["201"],
      ["400", "201"],
      ["400"],
      ["503 retry-after 60", "201"],
      ["400", "201"],
      ["410"]
    ]
    const agents = scripts.map((script) => push.subscribe({ script }))
    const received = () => agents.map((agent) => agent.received.map(({ text }) => text))
    await join(
      [service.url],
      "news",
      agents.map(({ subscription }) => subscription)
    )
    // Too short a life for the 503's second try.
    const first = await publish(
      service.url,
      "news",
      { n: 1 },
      { TTL: "10", Urgency: "high", Topic: "score" }
    )
    const before = { accepted: 6, delivered: 1, dead: 3, expired: 1, gone: 1 }
    assert.deepInclude(await finished(service.url, "news", first), before)
    assert.equal(
      (await call(service.url, "DELETE", "/channels/news/registration", "user4")).status,
      202
    )

    assert.deepInclude(await redrive(nats.url, first, "--dry-run"), {
      code: 0,
      stdout: `4 pushes of broadcast ${first} would be sent again\n`
    })
    const { code, stderr, stdout } = await redrive(nats.url, first)
    assert.equal(code, 0, stderr)
    const second = idIn(stdout)
    assert.deepInclude(await finished(service.url, "news", second), {
      accepted: 3,
      delivered: 2,
      dead: 1,
      expired: 0,
      gone: 0
    })
    const text = '{"n":1}'
    assert.deepEqual(received(), [[text], [text], [], [text], [], []])
    const headersOf = (i: number) => {
      const { ttl, topic, urgency } = agents[i]!.received[0]!.headers
      return { ttl, topic, urgency }
    }
    assert.deepInclude(headersOf(1), { topic: "score", urgency: "high" })
    assert.isAtMost(Number(headersOf(1).ttl), 10)
    assert.deepInclude(await finished(service.url, "news", first), before)

    assert.deepInclude(await redrive(nats.url, first), {
      code: 1,
      stdout: "",
      stderr:
        `bellcast: broadcast ${first} was sent again as ${second}: ` +
        "redrive that one for those who are left\n"
    })
    const third = idIn((await redrive(nats.url, second)).stdout)
    assert.deepInclude(await finished(service.url, "news", third), {
      accepted: 1,
      delivered: 0,
      dead: 1
    })
  })

  it("is refused for a broadcast that is under way, reached all, or was never sent", async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using service = await startService({ natsUrl: nats.url })
    const agent = push.subscribe({ script: ["201", "503 retry-after 3000"] })
    await join([service.url], "news", [agent.subscription])
    const all = await publish(service.url, "news", { n: 1 })
    await finished(service.url, "news", all)
    assert.deepInclude(await redrive(nats.url, all), {
      code: 0,
      stdout: `broadcast ${all} left nobody to send to again\n`
    })

    const slow = await publish(service.url, "news", { n: 2 })
    await until(
      () => call(service.url, "GET", `/channels/news/broadcasts/${slow}`, "publisher"),
      ({ body }) => body.data.retrying === 1
    )
    const refused = await redrive(nats.url, slow)
    assert.deepInclude(refused, {
      code: 1,
      stderr: `bellcast: broadcast ${slow} is not finished: some of its pushes may still arrive\n`
    })

    const nc = await connect({ servers: nats.url })
    const wrong = headers()
    wrong.set("Bellcast-Redrives", "0")
    const { seq } = await jetstream(nc).publish("bellcast.cmd.broadcast.billing.news", "{}", {
      headers: wrong
    })
    await nc.close()
    const rejected = await until(
      () => call(service.url, "GET", `/channels/news/broadcasts/${seq}`, "publisher"),
      ({ body }) => typeof body.data?.rejected === "string"
    )
    assert.equal(rejected.body.data.rejected, "Bellcast-Redrives must be the id of a broadcast")
    assert.match((await redrive(nats.url, String(seq))).stderr, /was rejected/)
    assert.lengthOf(agent.received, 1)
  })
})
