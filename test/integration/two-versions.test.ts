// Two versions of the service at once: an upgrade and its way back under load, and a version that
// meets messages which only a later one reads. The later version is `test/support/number-two.ts`.
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { call, channelsOf, finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { type Service, sources, startService } from "../support/service.ts"

/** The messages that `number-two.ts` gives a number 2. */
const names = [
  ...["registration.put", "command.rejected", "plan", "shard", "outcome", "broadcast.finished"]
]
const laterModule = fileURLToPath(new URL("../support/number-two.ts", import.meta.url))

/** A process of the later version starts from its sources, slower than from a bundle. */
const patientMillis = 120_000

const former = (natsUrl: string, roles?: string) =>
  startService({ natsUrl, ...(roles === undefined ? {} : { roles }) })
const later = (natsUrl: string, roles?: string) =>
  startService({
    natsUrl,
    program: sources,
    readyTimeoutMillis: patientMillis,
    env: { NODE_OPTIONS: `--import=${laterModule}` },
    ...(roles === undefined ? {} : { roles })
  })

/** The types that are published from now on of messages that have a number 2, in their order. */
const listen = async (natsUrl: string) => {
  const admin = await connectAdmin(natsUrl)
  const types: Array<string> = []
  admin.nc.subscribe("bellcast.>", {
    callback: (_, msg) => {
      const type = msg.headers?.get("Bellcast-Type") ?? ""
      const [name, number] = type.split("/")
      if (!names.includes(name!)) return
      types.push(type)
      const { made } = msg.json<{ readonly made?: number }>()
      if (made !== (number === "2" ? 2 : undefined)) types.push(`${type} with another body`)
    }
  })
  await admin.nc.flush()
  return { types, nc: admin.nc, [Symbol.asyncDispose]: () => admin[Symbol.asyncDispose]() }
}

const firstOf = (types: ReadonlyArray<string>, number: number) =>
  names.filter((name) => types.includes(`${name}/${number}`))

/** Broadcasts, joins and commands that are rejected, one after the other, without end. */
const load = (nc: Awaited<ReturnType<typeof listen>>["nc"], gateway: () => Service) => {
  const accepted: Array<string> = []
  const joined: Array<string> = []
  let isOver = false
  /** A gateway that stops refuses connections: the next one gets the same request. */
  const tried = async <A>(ask: () => Promise<A>): Promise<A> => {
    let last: unknown
    for (let n = 0; n < 100; n++) {
      try {
        return await ask()
      } catch (error) {
        last = error
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
    throw last
  }
  const run = async () => {
    for (let n = 0; !isOver; n++) {
      const headers = { "idempotency-key": `load-${n}` }
      accepted.push(await tried(() => publish(gateway().url, "news", { n }, headers)))
      const user = `joins${n}`
      await tried(async () => {
        const { status } = await call(gateway().url, "PUT", "/channels/side/registration", user)
        assert.equal(status, 202)
      })
      joined.push(user)
      nc.publish(`bellcast.cmd.registration.side.${"A".repeat(22)}`, "not a registration")
    }
  }
  const running = run()
  return {
    accepted,
    joined,
    /** Returns when so many more broadcasts were accepted. */
    goesOn: async (more: number) => {
      const from = accepted.length
      await Promise.race([
        until(
          async () => accepted.length,
          (now) => now >= from + more
        ),
        running
      ])
    },
    end: async () => {
      isOver = true
      await running
    }
  }
}

/** The broadcasts of which a push did not arrive, as their counts say. */
const incomplete = async (url: string, broadcasts: ReadonlyArray<string>, pushes: number) => {
  const found: Array<object> = []
  for (const broadcast of broadcasts) {
    const counts = await finished(url, "news", broadcast)
    if (counts.accepted !== pushes || counts.delivered !== pushes) found.push(counts)
  }
  return found
}

const unreadable = async ({ metricsUrl }: Service) => {
  const text = await (await fetch(`${metricsUrl()}/metrics`)).text()
  return [...text.matchAll(/bellcast_unreadable_messages_total\{message="([a-z.]+)"\} [1-9]/g)].map(
    ([, name]) => name!
  )
}

describe("two versions of the service", { timeout: 600_000 }, () => {
  it("run at once under load, forward and back, and nothing is lost", async () => {
    await using nats = await startNats({ syncAlways: false })
    await using push = await startPushService()
    const agents = Array.from({ length: 8 }, () => push.subscribe().subscription)
    let [first, second] = [await former(nats.url), await former(nats.url)]
    let gateway = first
    await join([first.url], "news", agents)
    await using heard = await listen(nats.url)
    const { types } = heard
    const traffic = load(heard.nc, () => gateway)
    const replace = async (one: Service, start: typeof former): Promise<Service> => {
      const next = await start(nats.url)
      gateway = next
      await traffic.goesOn(3)
      assert.equal(await one.stop(), 0)
      return next
    }

    // Half way, and back: the later version writes what the former reads.
    first = await replace(first, later)
    await traffic.goesOn(10)
    assert.deepEqual(await unreadable(second), [])
    first = await replace(first, former)
    assert.deepEqual(firstOf(types, 2), [])

    // All the way.
    first = await replace(first, later)
    const laterStart = await later(nats.url)
    gateway = first
    assert.deepEqual(firstOf(types, 2), [], "while one runs that reads number 1 only")
    assert.equal(await second.stop(), 0)
    second = laterStart
    await until(
      async () => firstOf(types, 2),
      ({ length }) => length === names.length
    )
    assert.deepEqual([await unreadable(first), await unreadable(second)], [[], []])
    for (const each of [first, second]) assert.notMatch(each.output(), /starts again|given up/)

    // And back: what is written for the former version is all that it finds once it is alone.
    const formerStart = await former(nats.url)
    let from = types.length
    await until(
      async () => types.slice(from),
      (since) => {
        if (since.some((type) => type.endsWith("/2"))) from = types.length
        return firstOf(since, 1).length === names.length && traffic.accepted.length > 0
      }
    )
    await traffic.goesOn(10)
    gateway = formerStart
    assert.equal(await first.stop(), 0)
    assert.equal(await second.stop(), 0)
    await traffic.goesOn(10)
    await traffic.end()

    assert.deepEqual(
      types.filter((type) => type.endsWith("body")),
      []
    )
    // The former version cannot read what became of the broadcasts of the later one.
    await using reader = await later(nats.url)
    assert.deepEqual(await incomplete(reader.url, traffic.accepted, agents.length), [])
    for (const user of traffic.joined)
      assert.deepEqual(await channelsOf(reader.url, user), ["side"])
    assert.equal(await formerStart.stop(), 0)
  })

  it("stop where the former one is alone with what only the later one reads", async () => {
    await using nats = await startNats({ syncAlways: false })
    await using push = await startPushService()
    await using heard = await listen(nats.url)
    const { types } = heard
    const rejected: Array<string> = []
    heard.nc.subscribe("bellcast.evt.rejected.>", {
      callback: (_, m) => void rejected.push(m.subject)
    })
    const whole = await later(nats.url)
    await join([whole.url], "news", [push.subscribe().subscription])
    assert.equal(await whole.stop(), 0)

    // First no process delivers or counts, then none projects: the other version is to do so.
    const planner = await later(nats.url, "gateway,projection,fanout")
    const left = await until(
      async () => publish(planner.url, "news", { left: true }),
      () => types.includes("plan/2") && types.includes("shard/2")
    )
    assert.equal(await planner.stop(), 0)
    const writer = await later(nats.url, "gateway")
    let users = 0
    await until(
      () => call(writer.url, "PUT", "/channels/news/registration", `late${++users}`),
      ({ status }) => {
        assert.equal(status, 503, "stored, but not projected")
        return types.includes("registration.put/2")
      }
    )
    assert.equal(await writer.stop(), 0)
    const late = `late${users}`

    const old = await former(nats.url)
    await until(
      () => unreadable(old),
      (found) => ["plan", "registration.put", "shard"].every((name) => found.includes(name)),
      patientMillis
    )
    const heartbeat = async () => (await fetch(`${old.metricsUrl()}/__heartbeat__`)).status
    await until(heartbeat, (code) => code === 503)
    for (const line of [
      /is registration\.put\/2, which only a later.*projector stopped and starts again/,
      /is plan\/2, which only a later.*tally stopped and starts again/,
      /deliver: a message is of a later version, and is given back/,
      /"reason":"message \d+ of BELLCAST_\w+ is [a-z.]+\/2, .*heartbeat: delivery fails/
    ])
      await until(
        async () => old.output(),
        (text) => line.test(text),
        patientMillis
      )
    assert.deepEqual(await channelsOf(old.url, late), [])

    await using back = await later(nats.url)
    const counts = await finished(back.url, "news", left)
    assert.deepInclude(counts, { accepted: 1, delivered: 1 })
    await until(
      () => channelsOf(back.url, late),
      (names) => names.includes("news")
    )
    assert.deepEqual(rejected, [])
    assert.equal(await old.stop(), 0)
  })
})
