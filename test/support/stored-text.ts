// The data that NATS stores of credentials, to look for secrets in.
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"

/** All messages of LOG and of the buckets `permissions` and `cache`, as text. */
export const storedText = async (url: string): Promise<string> => {
  const nc = await connect({ servers: url })
  const jsm = await jetstreamManager(nc)
  const texts: Array<string> = []
  for (const stream of ["BELLCAST_LOG", "KV_bellcast_permissions", "KV_bellcast_cache"]) {
    const { state } = await jsm.streams.info(stream)
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      const found = await jsm.streams.getMessage(stream, { seq })
      if (found !== null) texts.push(`${found.subject} ${found.string()} ${found.header}`)
    }
  }
  await nc.close()
  return texts.join("\n")
}
