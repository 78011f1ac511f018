// Changes of broadcasts by requests or by the command, repeated until they are made or impossible.
import { setTimeout as sleep } from "node:timers/promises"
import { bellcast } from "../checks/cli.ts"
import type { Gateways } from "./gateways.ts"
import type { Request } from "./http.ts"

export type Attempt = () => Promise<"made" | "impossible" | "failed">

/** The error of a change that the present state does not allow. */
const impossible = 124
const pauseMillis = 300

export const byRequest =
  (gateways: Gateways, requestOf: () => Request): Attempt =>
  async () => {
    const { body, status } = await gateways.once(requestOf(), [200])
    if (status === 200) return "made"
    return status === 409 && body?.errno === impossible ? "impossible" : "failed"
  }

export const byCommand =
  (natsUrl: string, ...args: ReadonlyArray<string>): Attempt =>
  () =>
    bellcast(natsUrl, ...args).then(
      () => "made",
      (error) => (/there is nothing to/.test(String(error)) ? "impossible" : "failed")
    )

/** `unknown`: a failed attempt may be the change after which another one is impossible. */
export const repeat = async (attempt: Attempt): Promise<"made" | "unmade" | "unknown"> => {
  for (let isRepeated = false; ; isRepeated = true) {
    const became = await attempt()
    if (became === "made") return became
    if (became === "impossible") return isRepeated ? "unknown" : "unmade"
    await sleep(pauseMillis)
  }
}
