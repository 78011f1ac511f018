// The rig's own connection to NATS, as an administrator and publisher has it.
import { type JetStreamClient, type JetStreamManager, jetstream } from "@nats-io/jetstream"
import { connect, type NatsConnection } from "@nats-io/transport-node"

export interface RigClient extends AsyncDisposable {
  readonly nc: NatsConnection
  readonly js: JetStreamClient
  readonly jsm: JetStreamManager
}

/** Connects, and reconnects for as long as it lives. */
export const connectRig = async (urls: string): Promise<RigClient> => {
  const nc = await connect({
    servers: urls.split(","),
    name: "torture",
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    ignoreClusterUpdates: true,
    pingInterval: 3_000,
    maxPingOut: 2,
    waitOnFirstConnect: true,
    timeout: 5_000
  })
  const js = jetstream(nc, { timeout: 5_000 })
  // Without asking the server whether it has JetStream: it may not be ready for a moment.
  const jsm = await js.jetstreamManager(false)
  return { nc, js, jsm, [Symbol.asyncDispose]: () => nc.close() }
}
