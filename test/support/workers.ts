// A service with two delivery workers in processes of their own, for tests of what workers share.
import { until } from "./client.ts"
import { startNats } from "./nats.ts"
import { type Service, startService } from "./service.ts"

/** Resolves when the log of a service contains the words. */
export const says = (service: Service, words: RegExp) =>
  until(
    () => Promise.resolve(service.output()),
    (output) => words.test(output)
  )

/** Two delivery workers, either of which may get the first broadcast, and the other stages. */
export const startWorkers = async (env: Readonly<Record<string, string>> = {}) => {
  const nats = await startNats()
  const work = () => startService({ natsUrl: nats.url, roles: "delivery", env })
  const rest = await startService({ natsUrl: nats.url, roles: "gateway,projection,fanout,tally" })
  const workers = await Promise.all([work(), work()])
  return {
    url: rest.url,
    natsUrl: nats.url,
    work,
    /** The worker that logs the words first, then the other one. */
    whoSaw: async (words: RegExp) => {
      const first = await until(
        () => Promise.resolve(workers.findIndex(({ output }) => words.test(output()))),
        (index) => index >= 0
      )
      return [workers[first]!, workers[1 - first]!] as const
    },
    workers,
    [Symbol.asyncDispose]: async () => {
      for (const each of [...workers, rest]) await each[Symbol.asyncDispose]()
      await nats[Symbol.asyncDispose]()
    }
  }
}
