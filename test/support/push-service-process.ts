// The simulator in a process of its own: its CPU time counts apart, and it survives the sender.
// spawn-push-service.ts starts it with the options as JSON in the first argument and sends requests
// over IPC.
import { type PushServiceOptions, startPushService } from "./push-service.ts"
import type { UserAgentOptions } from "./user-agent.ts"

const options: PushServiceOptions = JSON.parse(process.argv[2] ?? "{}")
const service = await startPushService(options)

/** How many pushes had each text, or how many browsers got each: one push of it or more. */
const countsOf = (per: "push" | "browser") => {
  const counts: Record<string, number> = {}
  for (const { received } of service.agents) {
    const texts = received.map(({ text }) => text)
    for (const text of per === "push" ? texts : new Set(texts))
      counts[text] = (counts[text] ?? 0) + 1
  }
  return counts
}

const cpuMicros = () => {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** What the parent can ask for: one line a question. */
const verbs = {
  subscribe: (count: number, agentOptions: UserAgentOptions) =>
    Array.from({ length: count }, () => service.subscribe(agentOptions).subscription),
  report: () => ({
    counts: service.counts,
    faults: service.faults,
    tokens: service.tokens,
    texts: countsOf("push"),
    reached: countsOf("browser"),
    cpuMicros: cpuMicros()
  }),
  waitForDistinct: (distinct: number, timeoutMillis: number) =>
    service.waitFor(({ counts }) => counts.distinct >= distinct, timeoutMillis),
  /** Percentiles of the milliseconds from `since` (since the epoch) to each delivery. */
  latencies: (since: number) => {
    const sorted = service.deliveredAt.map((at) => at - since).sort((a, b) => a - b)
    const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN
    return { first: at(0), p50: at(0.5), p99: at(0.99) }
  },
  /** When each of `count` subscriptions from `first` on was delivered to; 0: not yet. */
  receipts: (first: number, count: number) =>
    service.agents.slice(first, first + count).map(({ deliveredAt }) => deliveredAt),
  reset: () => service.reset()
}

/** Name to signature of everything the parent can ask for. */
export type Verbs = typeof verbs

process.on(
  "message",
  async ({ id, verb, args }: { id: number; verb: keyof Verbs; args: ReadonlyArray<never> }) => {
    try {
      // The parent's types make verb and arguments match; TypeScript cannot check that here.
      const call = verbs[verb] as (...args: ReadonlyArray<never>) => unknown
      process.send?.({ id, value: await call(...args) })
    } catch (error) {
      process.send?.({ id, error: error instanceof Error ? error.message : String(error) })
    }
  }
)
// Without its parent it has no purpose: never survive a killed test run.
process.once("disconnect", () => process.exit(0))
