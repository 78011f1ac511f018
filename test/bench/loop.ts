// The baseline: what people write today, a loop over web-push's sendNotification with a kept-alive
// agent and 100 in flight. Reads {subscriptions, vapid, payload} over IPC, warms up on the first
// 3,000, answers with seconds and CPU seconds.
import { Agent } from "node:https"
import webpush, { type PushSubscription } from "web-push"

const inFlight = 100
const warmUp = 3_000

interface Order {
  readonly subscriptions: ReadonlyArray<PushSubscription>
  readonly vapid: { readonly publicKey: string; readonly privateKey: string }
  readonly payload: string
}

const agent = new Agent({ keepAlive: true, maxSockets: inFlight })

const run = async ({ payload, subscriptions, vapid }: Order) => {
  let next = 0
  const one = async () => {
    while (next < subscriptions.length) {
      await webpush.sendNotification(subscriptions[next++]!, payload, {
        agent,
        TTL: 60,
        vapidDetails: { subject: "mailto:bench@example.com", ...vapid }
      })
    }
  }
  await Promise.all(Array.from({ length: inFlight }, one))
}

process.once("message", async (order: Order) => {
  await run({ ...order, subscriptions: order.subscriptions.slice(0, warmUp) })
  const [cpu, start] = [process.cpuUsage(), performance.now()]
  await run(order)
  const { system, user } = process.cpuUsage(cpu)
  process.send!(
    { seconds: (performance.now() - start) / 1000, cpuSeconds: (user + system) / 1e6 },
    () => process.exit(0)
  )
})
