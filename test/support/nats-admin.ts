// A connection to a test's nats-server as an administrator has it: past the service.
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"

export type NatsAdmin = Awaited<ReturnType<typeof connectAdmin>>

export const connectAdmin = async (url: string) => {
  const nc = await connect({ servers: url, noAsyncTraces: true })
  // The default of 5 s is short for a disk that several servers wait for.
  const jsm = await jetstreamManager(nc, { timeout: 15_000 })
  return { nc, jsm, [Symbol.asyncDispose]: () => nc.close() }
}

/** Counts the answers to a consumer's deliveries, but for those that say that work goes on. */
export const countAnswers = async ({ nc }: NatsAdmin, consumer: string) => {
  let answered = 0
  nc.subscribe("$JS.ACK.>", {
    callback: (_, msg) => {
      if (msg.subject.includes(`.${consumer}.`) && msg.string() !== "+WPI") answered += 1
    }
  })
  await nc.flush()
  return async () => answered
}

/** Returns the requests that read streams and buckets while `work` runs: subject and body. */
export const readsOf = async ({ nc }: NatsAdmin, work: () => Promise<unknown>) => {
  const reads: Array<string> = []
  const callback = (_: unknown, msg: { subject: string; string: () => string }) =>
    void reads.push(`${msg.subject} ${msg.string()}`)
  const taps = ["STREAM.MSG.GET.*", "DIRECT.GET.*", "DIRECT.GET.*.>"].map((subject) =>
    nc.subscribe(`$JS.API.${subject}`, { callback })
  )
  await nc.flush()
  await work()
  await nc.flush()
  for (const each of taps) each.unsubscribe()
  return reads
}
