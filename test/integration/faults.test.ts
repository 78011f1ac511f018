// An hour of faults in a minute: DNS, TLS, 500, 429 and 403 from all push services in turn, then
// all is well.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters } from "#streams/subjects.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { refuse, reply } from "../support/push-script.ts"
import { startPushService } from "../support/push-service.ts"
import { scriptedDns } from "../support/scripted-dns.ts"
import { startService } from "../support/service.ts"
import { trustingEnvironment } from "../support/tls.ts"

const healthyEach = 15
const goneEach = 2

// A push dies within three seconds of faults, and strikes may follow each other at once: whatever
// is not believed for the time it takes alone would be suspended here.
const hurried = {
  BELLCAST_RETRY_BASE_MILLIS: "20",
  BELLCAST_STRIKE_INTERVAL_MILLIS: "100",
  BELLCAST_BREAKER_OPEN_MILLIS: "500",
  BELLCAST_PUSH_TIMEOUT_MILLIS: "3000"
}

/** How many commands of each type the log has for subscriptions. */
const commands = (url: string) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const counts: Record<string, number> = {}
      yield* (yield* EventLog).replay("log", [filters.subscriptions], ({ message }) =>
        Effect.sync(() => {
          counts[message.type] = (counts[message.type] ?? 0) + 1
        })
      )
      return counts
    }).pipe(Effect.provide(natsLayer({ url, name: "test" })))
  )

it("costs nobody healthy a subscription", { timeout: 300_000 }, async () => {
  await using nats = await startNats()
  using dns = scriptedDns()
  await using first = await startPushService({ tls: true, host: "localhost" })
  await using second = await startPushService({ tls: true, host: "localhost" })
  await using third = await startPushService({ tls: true, host: "localhost" })
  const services = [first, second, third]
  await using service = await startService({
    natsUrl: nats.url,
    env: { ...hurried, ...dns.env, ...trustingEnvironment }
  })

  let fault: ReturnType<typeof reply> | undefined
  const agents = services.flatMap((push) =>
    Array.from({ length: healthyEach + goneEach }, (_, i) =>
      push.subscribe({ script: [i < healthyEach ? "201" : "410"] })
    )
  )
  for (const agent of agents) agent.answerBy((next) => fault ?? next())
  const healthy = healthyEach * services.length
  const total = agents.length
  await join(
    [service.url],
    "news",
    agents.map(({ subscription }) => subscription)
  )

  /**
   * Starts the fault and sends broadcasts in turn, until each push is dead or deferred. Only a push
   * that dies may be a strike: then three broadcasts, which would suspend; else one.
   */
  const suffer = async (begin: () => void, dies = false) => {
    begin()
    for (const push of services) push.disconnect()
    const broadcasts: Array<string> = []
    for (let n = 0; n < (dies ? 3 : 1); n++) {
      const broadcast = await publish(service.url, "news", { n })
      broadcasts.push(broadcast)
      await until(
        async () =>
          (await call(service.url, "GET", `/channels/news/broadcasts/${broadcast}`, "publisher"))
            .body.data,
        ({ dead, retrying, waiting }) => waiting === 0 && (dies ? dead : retrying) === total
      )
    }
    return broadcasts
  }
  const end = () => {
    fault = undefined
    dns.say("")
    for (const push of services) push.breakTls(false)
  }
  // Faults that kill pushes come first: pushes that wait after the others would die of them, too.
  const suffered = [
    ...(await suffer(() => dns.say("ENOTFOUND"), true)),
    ...(await suffer(() => {
      end()
      fault = reply(500)
    }, true)),
    ...(await suffer(() => {
      end()
      dns.say("EAI_AGAIN")
    })),
    ...(await suffer(() => {
      end()
      for (const push of services) push.breakTls(true)
    })),
    ...(await suffer(() => {
      end()
      fault = reply(429, () => ({ "retry-after": "1" }))
    })),
    ...(await suffer(() => {
      fault = refuse(403, "BadJwtToken")
    }))
  ]
  assert.deepEqual(
    await commands(nats.url),
    { "subscription.put": total },
    "while nothing works, nothing is held against anybody"
  )

  end()
  const counts = await finished(
    service.url,
    "news",
    await publish(service.url, "news", { n: 99 }),
    60_000
  )
  // A retried push of an earlier broadcast may have found a subscription gone before this one was
  // cut into shards.
  assert.isAtMost(counts.gone, goneEach * services.length)
  assert.deepInclude(counts, {
    accepted: healthy + counts.gone,
    delivered: healthy,
    dead: 0,
    expired: 0
  })
  for (const broadcast of suffered) await finished(service.url, "news", broadcast, 60_000)
  assert.deepEqual(await commands(nats.url), {
    "subscription.put": total,
    "subscription.gone": goneEach * services.length
  })
  const again = await finished(service.url, "news", await publish(service.url, "news", { n: 100 }))
  assert.deepInclude(again, { accepted: healthy, delivered: healthy })
})
