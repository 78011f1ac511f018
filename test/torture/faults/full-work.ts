// WORK without room at the worst moment: pushes under way fail, outcomes and retries are due,
// and a process that delivers is killed while its outcomes wait for room. A service that notices a
// full WORK starts no new pushes, so those under way are the ones at risk.
import { setTimeout as sleep } from "node:timers/promises"
import type { RigClient } from "../nats/client.ts"
import { patiently } from "../nats/patiently.ts"
import { type Behaviour, well } from "../push/behaviour.ts"
import type { Origin } from "../push/origin.ts"
import type { Fault } from "./fault.ts"
import { limit } from "./full-streams.ts"

const stream = "BELLCAST_WORK"
/** Until pushes are under way that have not failed yet: a push times out after 5 s. */
const silentMillis = 3_500

export const fullWorkFaults = (
  client: () => RigClient,
  origins: ReadonlyArray<Origin>
): ReadonlyArray<Fault> => [
  {
    name: "WORK full while push services fail",
    nodes: [1, 3],
    short: true,
    plan: (random, { members }, secondsMax) => {
      const failing = random.shuffle(origins).slice(0, Math.ceil(origins.length / 2))
      const behaviour = random.pick<Behaviour>([
        { kind: "silent" },
        { kind: "failing", status: 503 }
      ])
      const delivering = members.filter(({ roles }) => roles.includes("delivery"))
      const killed = random.chance(0.5) ? random.pick(delivering).name : undefined
      // Room for some outcomes (13 kB for 64 pushes), not for all of their retries (450 B each).
      const roomBytes = 1_000 * random.between(6, 30)
      const seconds = Math.min(secondsMax, random.between(5, 10))
      const who = failing.map(({ name }) => name)
      const end = killed === undefined ? "" : `, then kill -9 ${killed}`
      return {
        text: `${who.join(", ")} ${behaviour.kind}, ${roomBytes} bytes left${end}`,
        seconds,
        // A process that starts sets the limit of its settings again: none may meanwhile.
        holds: ["nats", stream, ...who, ...members.map(({ name }) => name)],
        begin: async ({ fleet }) => {
          // A server that was restarted a moment ago may not respond at first.
          const info = async () => (await patiently(() => client().jsm.streams.info(stream)))!
          const { config } = await info()
          for (const origin of failing) origin.behave(behaviour)
          await sleep(silentMillis)
          const { state } = await info()
          await limit(client(), stream, state.bytes + roomBytes)
          const member = fleet.find(({ name }) => name === killed)
          return {
            mayRepeat: killed === undefined ? [] : [killed],
            end: async () => {
              await member?.kill()
              for (const origin of failing) origin.behave(well)
              await limit(client(), stream, config.max_bytes).catch(() => {})
              await member?.start()
            }
          }
        }
      }
    }
  }
]
