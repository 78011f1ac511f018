// Requests to the gateways on NATS, as an internal service makes them.
import { headers as natsHeaders } from "@nats-io/transport-node"
import { subjects } from "#streams/subjects.ts"
import type { RigClient } from "../nats/client.ts"
import { parse, type Request, type Response, timeoutMillis } from "./http.ts"

/** The rights of this source are those of the principal `nats:torture`. */
export const source = "torture"

/** Never rejects. Without an error the status is 200; the location is the id of a broadcast. */
export const requestOnNats = async (
  { nc }: RigClient,
  { body, headers = {}, path }: Request
): Promise<Response> => {
  const named = natsHeaders()
  for (const [name, value] of Object.entries(headers)) named.set(name, value)
  try {
    const options = { timeout: timeoutMillis, headers: named }
    const msg = await nc.request(subjects.api(source, path), JSON.stringify(body), options)
    const header = (name: string) => msg.headers?.get(name) || undefined
    return {
      status: Number(header("Nats-Service-Error-Code") ?? 200),
      location: header("Bellcast-Broadcast"),
      body: parse(msg.string())
    }
  } catch {
    return { status: 0, location: undefined, body: undefined }
  }
}
