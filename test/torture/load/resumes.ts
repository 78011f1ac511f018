// An operator who resumes broadcasts that paused themselves: too many of their pushes failed.
import { setTimeout as sleep } from "node:timers/promises"
import { operator } from "../fleet/users.ts"
import type { Random } from "../random.ts"
import type { Gateways } from "./gateways.ts"

/** Looks for such broadcasts until `stop`. */
export type Resumes = (stop: AbortSignal) => Promise<void>

const pauseMillis = [1_000, 4_000] as const

export const makeResumes =
  (gateways: Gateways, random: Random): Resumes =>
  async (stop) => {
    while (!stop.aborted) {
      await sleep(random.between(...pauseMillis), undefined, { signal: stop }).catch(() => {})
      const asked = { method: "GET", path: "/broadcasts?state=paused", user: operator }
      const { body } = await gateways.once(asked, [200])
      for (const { changed_by, id } of body?.data ?? []) {
        if (changed_by !== "pause_when") continue
        const resumed = { data: { state: "running" } }
        const path = `/broadcasts/${id}`
        // One that is lost, or comes too late, is repeated after the next look.
        await gateways.once({ method: "PATCH", path, user: operator, body: resumed }, [200])
      }
    }
  }
