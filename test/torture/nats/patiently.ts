// Requests to JetStream as an administrator under trouble makes them: tried again for a while.
import { setTimeout as sleep } from "node:timers/promises"

const patienceMillis = 20_000
const pauseMillis = 500

/**
 * Repeats a request that fails, for instance because a stream has no leader. What is not found is
 * done (undefined): a former try may have succeeded without a response. Rejects after 20 s.
 */
export const patiently = async <A>(ask: () => Promise<A>): Promise<A | undefined> => {
  const deadline = performance.now() + patienceMillis
  while (true) {
    try {
      return await ask()
    } catch (error) {
      if (/not found/i.test(String(error))) return undefined
      if (performance.now() > deadline) throw error
      await sleep(pauseMillis)
    }
  }
}
