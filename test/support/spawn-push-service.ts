// Starts the simulator as a process and talks to it, for benches (its CPU time counts apart) and
// for tests that kill the sender.
import { fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import type { PushServiceOptions } from "./push-service.ts"
import type { Verbs } from "./push-service-process.ts"

type Answer<Verb extends keyof Verbs> = Promise<Awaited<ReturnType<Verbs[Verb]>>>

export interface SpawnedPushService extends AsyncDisposable {
  readonly pid: number
  /** `count` new subscriptions with the same options, as the browsers' JSON. */
  readonly subscribe: (
    count: number,
    options?: Parameters<Verbs["subscribe"]>[1]
  ) => Answer<"subscribe">
  /** Counts, faults, how often each text arrived, and the CPU time (user and system) so far. */
  readonly report: () => Answer<"report">
  /**
   * Resolves when this many subscriptions have at least one push since the start or the last reset;
   * rejects after the timeout.
   */
  readonly waitForDistinct: (distinct: number, timeoutMillis: number) => Answer<"waitForDistinct">
  /** Percentiles of the milliseconds from a moment (since the epoch) to each delivery. */
  readonly latencies: (since: number) => Answer<"latencies">
  /** When each of `count` subscriptions from `first` on was delivered to; 0: not yet. */
  readonly receipts: (first: number, count: number) => Answer<"receipts">
  /** Counts, faults and histories to zero; subscriptions stay. */
  readonly reset: () => Answer<"reset">
}

interface Pending {
  readonly resolve: (value: never) => void
  readonly reject: (reason: Error) => void
}

/** Starts the process; ends it on dispose. When it cannot start, the first request rejects. */
export const spawnPushService = async (
  options: PushServiceOptions = {}
): Promise<SpawnedPushService> => {
  const file = fileURLToPath(new URL("push-service-process.ts", import.meta.url))
  // A test runner's own node flags are not for the child.
  const child = fork(file, [JSON.stringify(options)], { execArgv: [] })
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()))
  const pending = new Map<number, Pending>()
  let lastId = 0

  child.on("message", ({ id, value, error }: { id: number; value: never; error?: string }) => {
    if (error === undefined) pending.get(id)?.resolve(value)
    else pending.get(id)?.reject(new Error(error))
    pending.delete(id)
  })
  child.once("exit", (code, signal) => {
    for (const { reject } of pending.values())
      reject(new Error(`the push service process ended: ${signal ?? code}`))
  })

  const ask = <Verb extends keyof Verbs>(
    verb: Verb,
    ...args: Parameters<Verbs[Verb]>
  ): Answer<Verb> =>
    new Promise((resolve, reject) => {
      lastId += 1
      pending.set(lastId, { resolve, reject })
      child.send({ id: lastId, verb, args }, (error) => error && reject(error))
    })

  return {
    pid: child.pid!,
    subscribe: (count, agentOptions = {}) => ask("subscribe", count, agentOptions),
    report: () => ask("report"),
    waitForDistinct: (distinct, timeoutMillis) => ask("waitForDistinct", distinct, timeoutMillis),
    latencies: (since) => ask("latencies", since),
    receipts: (first, count) => ask("receipts", first, count),
    reset: () => ask("reset"),
    [Symbol.asyncDispose]: () => {
      child.kill("SIGKILL")
      return exited
    }
  }
}
