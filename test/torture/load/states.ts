// A publisher who stops broadcasts while they are sent: cancels some, pauses and resumes others.
// Postpones some that have not started.
import { setTimeout as sleep } from "node:timers/promises"
import { publisher } from "../fleet/users.ts"
import { acknowledge, type Broadcast, begin } from "../model/model.ts"
import type { Random } from "../random.ts"
import type { Gateways } from "./gateways.ts"
import type { Request } from "./http.ts"

/** Stops a broadcast that was acknowledged, or leaves it alone. */
export type Stop = (broadcast: Broadcast) => Promise<void>

type Verb = "cancel" | "pause" | "resume" | "postpone"

const states = { cancel: "cancelled", pause: "paused", resume: "running" } as const
/** The error of a change that the present state does not allow. */
const impossible = 124
const pauseMillis = 300
/** From the acknowledgement to the first change, and between two. */
const waitMillisMax = 3_000
const postponedMillis = 5_000

/** A broadcast that was published to users by a request on NATS is changed by one, too. */
const requestOf = ({ id, via }: Broadcast, verb: Verb): Request => {
  const patch = { method: "PATCH", path: `/broadcasts/${id}`, user: publisher }
  if (verb === "postpone") {
    const at = new Date(Date.now() + postponedMillis).toISOString()
    return { ...patch, body: { data: { at } } }
  }
  return via.startsWith("to users")
    ? { method: "NATS", path: verb, body: { broadcast: String(id) } }
    : { ...patch, body: { data: { state: states[verb] } } }
}

export const makeStop = (gateways: Gateways, random: Random): Stop => {
  /** Repeats the change until it is made, or impossible. Returns whether it is made. */
  const change = async (broadcast: Broadcast, verb: Verb): Promise<boolean> => {
    while (true) {
      const { body, status } = await gateways.once(requestOf(broadcast, verb), [200])
      if (status === 200) return true
      if (status === 409 && body?.errno === impossible) return false
      await sleep(pauseMillis)
    }
  }

  const cancel = async (broadcast: Broadcast) => {
    broadcast.cancelled = begin()
    if (await change(broadcast, "cancel")) acknowledge(broadcast.cancelled)
    else delete broadcast.cancelled
  }

  return async (broadcast) => {
    if (broadcast.right !== undefined || !random.chance(0.3)) return
    const wait = () => sleep(random.between(0, waitMillisMax))
    await wait()
    const isPublishers = broadcast.isScheduled && !broadcast.via.startsWith("to users")
    if (isPublishers && random.chance(0.5)) return void (await change(broadcast, "postpone"))
    if (random.chance(0.5)) return cancel(broadcast)
    if (!(await change(broadcast, "pause"))) return
    await wait()
    if (random.chance(0.2)) return cancel(broadcast)
    if (!(await change(broadcast, "resume")) || random.chance(0.7)) return
    await wait()
    return cancel(broadcast)
  }
}
