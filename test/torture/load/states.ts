// People who stop broadcasts while they are sent: they cancel some, pause and resume others, and
// change some that have not started.
import { setTimeout as sleep } from "node:timers/promises"
import { operator, publisher } from "../fleet/users.ts"
import { acknowledge, type Broadcast, begin, namesUsers } from "../model/model.ts"
import type { Random } from "../random.ts"
import { byCommand, byRequest, repeat } from "./attempts.ts"
import type { Gateways } from "./gateways.ts"
import type { Request } from "./http.ts"
import { makeReschedule } from "./reschedule.ts"

/** Stops a broadcast that was acknowledged, or leaves it alone. */
export type Stop = (broadcast: Broadcast) => Promise<void>

type Verb = "cancel" | "pause" | "resume"
/** Operators change states by requests and by the command. */
type Actor = "publisher" | "operator" | "command"

const states = { cancel: "cancelled", pause: "paused", resume: "running" } as const
/** From the acknowledgement to the first change, and between two. */
const waitMillisMax = 3_000
/** To a cancellation of retries that a resume has begun again: it waits for those under way. */
const lateMillisMax = 30_000

/**
 * Publishers change a broadcast to users by a request on NATS, as they published it. Operators may
 * change the state of every broadcast.
 */
const requestOf = (broadcast: Broadcast, verb: Verb, actor: Exclude<Actor, "command">): Request => {
  const { id, via } = broadcast
  const path = `/broadcasts/${id}`
  const body = { data: { state: states[verb] } }
  if (actor === "operator") return { method: "PATCH", path, user: operator, body }
  return via.startsWith("to users")
    ? { method: "NATS", path: verb, body: { broadcast: String(id) } }
    : { method: "PATCH", path, user: publisher, body }
}

export const makeStop = (gateways: Gateways, natsUrl: string, random: Random): Stop => {
  const reschedule = makeReschedule(gateways, random)

  const change = async (broadcast: Broadcast, verb: Verb, actor: Actor): Promise<boolean> => {
    const attempt =
      actor === "command"
        ? byCommand(natsUrl, "broadcast", verb, String(broadcast.id))
        : byRequest(gateways, () => requestOf(broadcast, verb, actor))
    return (await repeat(attempt)) === "made"
  }

  const cancel = async (broadcast: Broadcast, actor: Actor) => {
    broadcast.cancelled = begin()
    if (await change(broadcast, "cancel", actor)) acknowledge(broadcast.cancelled)
    else delete broadcast.cancelled
  }

  /** The right of a guest may have ended, and no publisher over HTTP may name users. */
  const actorOf = ({ right, via, ...to }: Broadcast): Actor => {
    const isOthers = right !== undefined || (via === "redrive" && namesUsers(to))
    if (!isOthers && random.chance(0.7)) return "publisher"
    return random.chance(0.7) ? "operator" : "command"
  }

  return async (broadcast) => {
    const { isScheduled, right } = broadcast
    if (!random.chance(right !== undefined ? 0.1 : isScheduled ? 0.6 : 0.3)) return
    const actor = actorOf(broadcast)
    const wait = () => sleep(random.between(0, waitMillisMax))
    await wait()
    if (isScheduled && random.chance(0.7)) return reschedule(broadcast)
    if (random.chance(0.5)) return cancel(broadcast, actor)
    if (!(await change(broadcast, "pause", actor))) return
    await wait()
    if (random.chance(0.2)) return cancel(broadcast, actorOf(broadcast))
    if (!(await change(broadcast, "resume", actorOf(broadcast))) || random.chance(0.7)) return
    await sleep(random.between(0, random.chance(0.5) ? lateMillisMax : waitMillisMax))
    return cancel(broadcast, actor)
  }
}
