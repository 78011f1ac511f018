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
