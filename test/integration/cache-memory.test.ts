// A service with less memory for its caches than its subscriptions need reaches everybody, and says
// what its caches hold.
import { assert, it } from "vitest"
import { cacheNames } from "#memory/cache-memory.ts"
import { finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

const subscribers = 60

it.each([
  { bytesMax: 0, title: "without memory for caches" },
  { bytesMax: 32_768, title: "with memory for a part" },
  { bytesMax: 16 * 1024 ** 2, title: "with memory for all" }
])("reaches everybody, twice, $title", { timeout: 60_000 }, async ({ bytesMax }) => {
  await using nats = await startNats()
  await using push = await startPushService()
  await using service = await startService({
    natsUrl: nats.url,
    env: { BELLCAST_CACHE_BYTES_MAX: String(bytesMax) }
  })
  const agents = Array.from({ length: subscribers }, () => push.subscribe())
  await join(
    [service.url],
    "news",
    agents.map(({ subscription }) => subscription)
  )
  for (const n of [1, 2]) {
    const counts = await finished(service.url, "news", await publish(service.url, "news", { n }))
    assert.deepInclude(counts, { accepted: subscribers, delivered: subscribers })
  }
  const bytesByCache = async () => {
    const text = await (await fetch(`${service.metricsUrl()}/metrics`)).text()
    const lines = text.matchAll(/^bellcast_cache_bytes\{cache="([a-z-]+)"\} (\d+)$/gm)
    return new Map([...lines].map(([, cache = "", value]) => [cache, Number(value)]))
  }
  assert.sameMembers([...(await bytesByCache()).keys()], [...cacheNames])
  // Changes stay in memory until they are stored.
  await until(
    async () => [...(await bytesByCache()).values()].reduce((a, b) => a + b, 0),
    (sum) => sum <= bytesMax
  )
  if (bytesMax <= 1024 ** 2) return
  const bytes = await bytesByCache()
  assert.isAtLeast(bytes.get("public-keys")!, subscribers * 3_000)
  // Of both broadcasts.
  assert.isAtLeast(bytes.get("payloads")!, 2 * 300)
  assert.isAtLeast(bytes.get("log")!, 2 * 2_000)
})
