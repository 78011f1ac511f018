// The gateways of the fleet, used in turn, and the repetition of a change until it is acknowledged.
import { setTimeout as sleep } from "node:timers/promises"
import type { Model } from "../model/model.ts"
import type { RigClient } from "../nats/client.ts"
import { isPassing, type Request, type Response, request } from "./http.ts"
import { requestOnNats } from "./nats.ts"

export interface Gateways {
  /** One request to one of them. A status that no fault explains is noted as wrong. */
  readonly once: (asked: Request, expected: ReadonlyArray<number>) => Promise<Response>
  /**
   * Repeats until a response has an expected status; undefined: `stop` came first. `isRepeated`: a
   * former attempt may have been done, or be done later.
   */
  readonly until: (
    asked: Request,
    expected: ReadonlyArray<number>,
    stop?: AbortSignal
  ) => Promise<(Response & { readonly isRepeated: boolean }) | undefined>
}

const pauseMillis = 300

export const makeGateways = (
  bases: ReadonlyArray<string>,
  nats: RigClient,
  model: Model
): Gateways => {
  let turn = 0
  const once: Gateways["once"] = async (asked, expected) => {
    const response = await (asked.method === "NATS"
      ? requestOnNats(nats, asked)
      : request(bases[turn++ % bases.length]!, asked))
    if (!expected.includes(response.status) && !isPassing(response.status)) {
      const { error_code, message } = response.body ?? {}
      const path = asked.path.replace(/[0-9a-f]{64}/, "ID")
      model.wrong.push(`${asked.method} ${path}: ${response.status} ${error_code} ${message}`)
    }
    return response
  }
  return {
    once,
    until: async (asked, expected, stop) => {
      for (let isRepeated = false; stop?.aborted !== true; isRepeated = true) {
        const response = await once(asked, expected)
        if (expected.includes(response.status)) return { ...response, isRepeated }
        await sleep(pauseMillis)
      }
      return undefined
    }
  }
}
