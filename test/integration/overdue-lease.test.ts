// A lease that nats-server does not end: one that was killed may bring a former renewal back.
import { jetstream } from "@nats-io/jetstream"
import { it } from "vitest"
import { bucketSubject, keys } from "#streams/buckets.ts"
import { finished, join, publish } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

it("is taken from a process that does not renew it", { timeout: 90_000 }, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  await using admin = await connectAdmin(nats.url)
  const before = await startService({ natsUrl: nats.url })
  await before[Symbol.asyncDispose]()
  const lease = JSON.stringify({ v: 1, holder: "a process that is gone" })
  for (const follower of ["projector", "tally"])
    await jetstream(admin.nc).publish(bucketSubject("cache", keys.lease(follower)), lease)
  await using service = await startService({ natsUrl: nats.url })
  await join([service.url], "news", [push.subscribe().subscription])
  await finished(service.url, "news", await publish(service.url, "news", { n: 1 }))
})
