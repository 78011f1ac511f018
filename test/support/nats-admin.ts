// A connection to a test's nats-server as an administrator has it: past the service.
import { jetstreamManager } from "@nats-io/jetstream"
import { connect, type NatsConnection } from "@nats-io/transport-node"

export type NatsAdmin = Awaited<ReturnType<typeof connectAdmin>>

/** Milliseconds for a request that names no time-out. The default of nats.js is a second. */
const requestMillis = 15_000

const patient = (nc: NatsConnection): NatsConnection => {
  const ask = nc.request.bind(nc)
  const request: NatsConnection["request"] = (subject, payload, options) =>
    ask(subject, payload, { timeout: requestMillis, ...options })
  return Object.assign(nc, { request })
}

export const connectAdmin = async (url: string) => {
  const nc = patient(await connect({ servers: url }))
  const jsm = await jetstreamManager(nc)
  return { nc, jsm, [Symbol.asyncDispose]: () => nc.close() }
}
