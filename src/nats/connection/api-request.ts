// Sends requests to the API on NATS, as internal services do (streams/README.md).
import { headers as newHeaders, RequestError } from "@nats-io/transport-node"
import * as Effect from "effect/Effect"
import { Nats } from "./connection.ts"
import { attempt } from "./errors.ts"

/** Longer than the 10 s for which a gateway works on a request. */
const responseMillis = 11_000

export interface ApiReply {
  /** The status of an error; 0: it is none. */
  readonly status: number
  readonly text: string
}

/** The response of a gateway; undefined: no gateway runs. */
export const requestApi = Effect.fnUntraced(function* (
  subject: string,
  body: unknown,
  given: Readonly<Record<string, string>>
) {
  const { nc } = yield* Nats
  return yield* attempt("request to the API", async (): Promise<ApiReply | undefined> => {
    try {
      const headers = newHeaders()
      for (const [name, value] of Object.entries(given)) headers.set(name, value)
      const options = { timeout: responseMillis, headers }
      const reply = await nc.request(subject, JSON.stringify(body), options)
      const status = Number(reply.headers?.get("Nats-Service-Error-Code") || 0)
      return { status, text: reply.string() }
    } catch (error) {
      if (error instanceof RequestError && error.isNoResponders()) return undefined
      throw error
    }
  })
})
