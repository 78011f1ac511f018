// Judges whether broadcasts are planned and pushes delivered: by the durable consumers, and by the
// roles that processes run. Pure.
import type { Processes } from "#nats/connection/processes.ts"
import type { ConsumerHealth } from "#nats/watch/upkeep.ts"

type ConsumerState = Omit<ConsumerHealth, "stream">

/**
 * How long messages may wait while no worker takes any. Longer than a restart of all workers, and
 * than all hands of a worker wait for slow push services.
 */
export const idleMillisMax = 300_000

const roleOf: Readonly<Record<string, string>> = {
  planner: "fanout",
  deliver: "delivery",
  limited: "delivery",
  retry: "delivery",
  states: "delivery"
}

/** Why nothing is planned or delivered, in words; undefined: the consumer is at work. */
export const troubleOf = (state: ConsumerState): string | undefined => {
  const { consumer, idleMillis, pending, trouble } = state
  // A consumer that was changed still delivers, and is changed back.
  if (trouble === "missing" || trouble === "paused") return `${consumer} is ${trouble}`
  if (pending === 0 || idleMillis < idleMillisMax) return undefined
  const seconds = Math.round(idleMillis / 1000)
  return (
    `${consumer} has ${pending} waiting and nobody took one for ${seconds} s: ` +
    `does a process run the role ${roleOf[consumer]}?`
  )
}

/**
 * How long nobody may run a role. Longer than a restart of its only process: that serves on for
 * 5 s, drains for 20 s at most, and starts.
 */
export const absentMillisMax = 60_000

/** The role that nobody runs, in words; undefined: there is none. */
export const rolesFault = ({
  isKnown,
  states
}: Pick<Processes["Service"], "isKnown" | "states">) => {
  if (!isKnown())
    return (
      "NATS does not bring back what this process publishes on bellcast.sys.process: permit its " +
      "login to publish and subscribe to bellcast.sys.>"
    )
  const absent = states().filter(({ absentMillis }) => absentMillis >= absentMillisMax)
  if (absent.length === 0) return undefined
  const roles = absent.map(({ role }) => role).join(", ")
  const seconds = Math.round(Math.max(...absent.map(({ absentMillis }) => absentMillis)) / 1000)
  return `no process runs the role ${roles} (for ${seconds} s): start one (BELLCAST_ROLES)`
}
