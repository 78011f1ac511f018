import { it } from "vitest"
import { call, join, publish } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

const wait = (ms: number) => new Promise((r) => setTimeout(r, ms))
it("exp", { timeout: 120_000 }, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using push = await startPushService()
  await using admin = await connectAdmin(nats.url)
  await using service = await startService({ natsUrl: nats.url })
  const agents = Array.from({ length: 3 }, () => push.subscribe({}))
  await join(
    [service.url],
    "news",
    agents.map(({ subscription }) => subscription)
  )
  let shown = service.output().length
  const out = () => {
    const t = service.output().slice(shown)
    shown = service.output().length
    return t
  }
  const show = async (what: string) => {
    const list = await call(service.url, "GET", "/subscriptions", "user0")
    const t0 = Date.now()
    const put = await call(service.url, "POST", "/subscriptions", "user0", {
      data: push.subscribe({}).subscription
    })
    const reg = await call(service.url, "PUT", "/channels/news/registration", "user7")
    const beat = await call(service.url, "GET", "/__heartbeat__")
    console.log(
      what,
      "GET",
      list.status,
      JSON.stringify(list.body.data?.length ?? list.body),
      "POST",
      put.status,
      put.body.message,
      "REG",
      reg.status,
      reg.body.message,
      Date.now() - t0,
      "beat",
      JSON.stringify(beat.body)
    )
    console.log(out().slice(0, 3000))
  }
  const steps = process.env["STEPS"]!.split(",")
  for (const step of steps) {
    if (step.startsWith("lease"))
      await admin.jsm.streams.purge("KV_bellcast_cache", {
        filter: "$KV.bellcast_cache.lease.projector"
      })
    else await admin.jsm.streams.delete(step)
    await show(`${step} at once`)
    await wait(5000)
    await show(`${step} after 5 s`)
    console.log("publish", await publish(service.url, "news", { n: 1 }).catch((e) => String(e)))
    await wait(2000)
    console.log(out().slice(0, 3000))
  }
})
