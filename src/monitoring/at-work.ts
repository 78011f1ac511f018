// Judges by the durable consumers whether broadcasts are planned and pushes delivered. Pure.
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
