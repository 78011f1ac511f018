// The accounts file for nats-server as tests use it, and clients with a login of it.
import { readFileSync } from "node:fs"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"

export const accounts = readFileSync(
  new URL("../../streams/accounts.conf", import.meta.url),
  "utf8"
)
const names = [...accounts.matchAll(/password: \$(\w+)/g)]
/** Every password of the file is "word". */
export const passwords = Object.fromEntries(names.map(([, name]) => [name!, "word"]))

/** A client with the errors that the server reported to it. */
export const clientOf = async (port: number, user: string, inboxPrefix: string) => {
  const nc = await connect({
    servers: `127.0.0.1:${port}`,
    user,
    pass: "word",
    inboxPrefix,
    reconnect: false
  })
  const violations: Array<string> = []
  void (async () => {
    for await (const status of nc.status())
      if (status.type === "error") violations.push(status.error.message)
  })()
  return { nc, violations, [Symbol.asyncDispose]: () => nc.close() }
}

/** The content of the streams; changes with every message that is stored, and every purge. */
export const storedIn = async (port: number) => {
  await using admin = await clientOf(port, "bellcast-admin", "_INBOX")
  const jsm = await jetstreamManager(admin.nc)
  const states: Record<string, unknown> = {}
  for await (const { config, state } of jsm.streams.list()) {
    // Leases are renewed all the time, and checkpoints are saved.
    if (config.name === "KV_bellcast_cache") continue
    const { state: detailed } = await jsm.streams.info(config.name, { subjects_filter: ">" })
    states[config.name] = [state.first_seq, detailed.subjects]
    for await (const { config: consumer, paused } of jsm.consumers.list(config.name))
      if (consumer.durable_name !== undefined)
        states[`${config.name} ${consumer.durable_name}`] = [consumer, paused]
  }
  return states
}
