// A NATS with limits of its own: the service keeps within them, or its start says which limit must
// be another. It is never ready without delivering.
import { assert, describe, it } from "vitest"
import { type Role, roles } from "#config"
import { probesOf } from "#nats/admin/limits.ts"
import { call, join, publish, until } from "../support/client.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startConfiguredNats } from "../support/nats-configured.ts"
import { claimPort } from "../support/ports.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

/** More than a pull or a batch may have in these cases. */
const browsers = 120

/** An account with limits, for JetStream and of others. */
const account = (jetstream: string, limits = "") =>
  `jetstream: enabled\naccounts { SITE { jetstream: ${jetstream}, limits { ${limits} }, ` +
  "users: [{ user: u, password: p }] } }"

const start = async (config: string) => {
  const port = await claimPort()
  const opened = new AsyncDisposableStack()
  const natsUrl = `nats://u:p@127.0.0.1:${port}`
  try {
    opened.use(await startConfiguredNats(port, config))
    const service = opened.use(await startService({ natsUrl }))
    return { natsUrl, service, [Symbol.asyncDispose]: () => opened.disposeAsync() }
  } catch (error) {
    await opened.disposeAsync()
    throw error
  }
}

/** Further processes on a NATS, one for each list of roles. */
const startProcesses = async (natsUrl: string, each: ReadonlyArray<ReadonlyArray<Role>>) => {
  const opened = new AsyncDisposableStack()
  for (const roles of each)
    opened.use(await startService({ natsUrl, env: { BELLCAST_ROLES: roles.join(",") } }))
  return opened
}

/** Subscriptions of a connection when it is probed: two for responses, three for announcements. */
const beforeProbe = 5

const lines = (output: string) =>
  output
    .split("\n")
    .filter((line) => /"level":[45]0/.test(line))
    .map((line) => JSON.parse(line) as { readonly msg: string })

describe("a NATS that allows less than the service asks for", { timeout: 90_000 }, () => {
  it.for([
    ["messages of a pull", "jetstream { limits { max_request_batch: 10 } }"],
    ["unacknowledged messages", "jetstream { limits { max_ack_pending: 60 } }"],
    ["unacknowledged messages of the account", account("{ max_ack_pending: 60 }")],
    ["messages of a batch", "jetstream { limits { batch { max_msgs: 20 } } }"],
    ["messages of a batch, too few for one", "jetstream { limits { batch { max_msgs: 3 } } }"],
    ["batches of a stream", "jetstream { limits { batch { max_inflight_per_stream: 1 } } }"],
    ["batches", "jetstream { limits { batch { max_inflight_total: 1 } } }"],
    ["streams without a limit of bytes", account("{ max_bytes_required: true }")],
    ["consumers, just enough", account("{ max_consumers: 8 }")],
    ["subscriptions, just enough", "jetstream: enabled\nmax_subscriptions: 64"]
  ] as const)("delivers all: %s", async ([, config]) => {
    await using push = await startPushService()
    await using started = await start(config)
    const { service } = started
    const agents = Array.from({ length: browsers }, () => push.subscribe())
    const subscriptions = agents.map(({ subscription }) => subscription)
    await join([service.url], "news", subscriptions)
    await publish(service.url, "news", { n: 1 })
    await until(
      async () => agents.filter(({ received }) => received.length === 1).length,
      (count) => count === browsers,
      30_000
    )
    const { body, status } = await call(service.url, "GET", "/__heartbeat__")
    assert.deepEqual([status, body.delivery], [200, true])
    // Nobody is blamed for what NATS does, and the consumers are left as NATS made them.
    for (const { msg } of lines(service.output())) assert.notMatch(msg, /changed|cannot be pulled/)
  })

  it("is probed with no more subscriptions than a process keeps", async () => {
    const [port, monitoring] = [await claimPort(), await claimPort()]
    const natsUrl = `nats://127.0.0.1:${port}`
    const config = `jetstream: enabled\nhttp: "127.0.0.1:${monitoring}"`
    await using __ = await startConfiguredNats(port, config)
    await using _ = await startProcesses(
      natsUrl,
      roles.map((role) => [role])
    )
    const kept = async () => {
      const response = await fetch(`http://127.0.0.1:${monitoring}/connz`)
      const { connections } = (await response.json()) as {
        readonly connections: ReadonlyArray<{ name: string; subscriptions: number }>
      }
      return roles.map((role) => {
        const { subscriptions = 0 } =
          connections.find(({ name }) => name === `bellcast ${role}`) ?? {}
        return subscriptions - beforeProbe - probesOf([role])
      })
    }
    await until(kept, (left) => left.every((count) => count >= 0))
  })

  it("has room for a process that takes no more than is left", async () => {
    // At rest, the first process has 35 and the second 25; nats-server counts each of them apart.
    await using started = await start(account("enabled", "max_subs: 50"))
    const { natsUrl, service } = started
    await using _ = await startProcesses(natsUrl, [["gateway"]])
    const { body, status } = await call(service.url, "GET", "/__heartbeat__")
    assert.deepEqual([status, body.delivery], [200, true])
    assert.notMatch(service.output(), /subscriptions exceeded/)
  })

  it("is named once for each consumer, which somebody else's change still is not", async () => {
    await using started = await start("jetstream { limits { max_request_batch: 10 } }")
    const { natsUrl, service } = started
    const said = (words: RegExp) =>
      until(
        async () => lines(service.output()).filter(({ msg }) => words.test(msg)),
        (found) => found.length > 0
      )
    assert.containSubset(await said(/^NATS gives the consumer deliver less than/), [
      { consumer: "deliver", max_batch: 10 }
    ])
    await using admin = await connectAdmin(natsUrl)
    await admin.jsm.consumers.update("BELLCAST_WORK", "deliver", { max_batch: 1 })
    await said(/^the consumer deliver was changed: it is changed back/)
    const { config } = await admin.jsm.consumers.info("BELLCAST_WORK", "deliver")
    assert.equal(config.max_batch, 10)
  })

  it.for([
    ["consumers", account("{ max_consumers: 4 }"), /allow 8 or more \(max_consumers\)/],
    ["durable consumers", account("{ max_consumers: 2 }"), /max_consumers/],
    ["streams", account("{ max_streams: 7 }"), /allow the account 10 streams or more/],
    [
      "time in which a message is known again",
      'jetstream { limits { duplicate_window: "1m" } }',
      /set duplicate_window of jetstream\.limits to 1 h or more/
    ],
    ["bytes of a message", account("enabled", "max_payload: 20000"), /max_payload must be 1048576/],
    ["subscriptions", "jetstream: enabled\nmax_subscriptions: 20", /\(max_subscriptions/],
    ["subscriptions of an account", account("enabled", "max_subs: 12"), /\(max_subscriptions/],
    ["tokens of a subject", "jetstream: enabled\nmax_sub_tokens: 3", /\(max_sub_tokens\)/],
    ["bytes of a line", "jetstream: enabled\nmax_control_line: 512", /max_control_line/]
  ] as const)("is named by a start that would not deliver: %s", async ([, config, words]) => {
    const failure = await start(config).then(
      (started) => started[Symbol.asyncDispose]().then(() => "started"),
      (error: unknown) => String(error)
    )
    assert.match(failure, /cannot start\. /)
    assert.match(failure, words, failure)
  })
})
