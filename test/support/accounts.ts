// The accounts file for nats-server as tests use it, and clients with a login of it.
import { readFileSync } from "node:fs"
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
