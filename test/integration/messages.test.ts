// The messages of a broadcast without a start, a rate or `pause_when`: no more than it needs.
import { assert, it } from "vitest"
import { finished, join, publish } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

/** The kinds of messages of a broadcast in LOG and WORK, each as often as it is there. */
const kindsOf = async ({ jsm }: NatsAdmin, id: string) => {
  const kinds: Array<string> = []
  for (const stream of ["BELLCAST_LOG", "BELLCAST_WORK"]) {
    const { state } = await jsm.streams.info(stream, { subjects_filter: ">" })
    for (const [subject, count] of Object.entries(state.subjects ?? {}))
      if (subject.includes(`.${id}.`) || subject.endsWith(`.${id}`))
        kinds.push(...Array(count).fill(subject.split(".")[1]!))
  }
  return kinds.sort()
}

it("a broadcast to one browser stores a plan, a job, a claim, an outcome and its end", async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  await using service = await startService({ natsUrl: nats.url })
  await using admin = await connectAdmin(nats.url)
  await join([service.url], "news", [push.subscribe().subscription])
  const id = await publish(service.url, "news", { n: 1 })
  await finished(service.url, "news", id)
  assert.deepEqual(await kindsOf(admin, id), ["evt", "job", "outcome", "outcome", "plan"])
})
