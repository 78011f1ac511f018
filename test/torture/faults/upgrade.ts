// Rolling upgrade in mid-broadcast: a run begins with an earlier commit everywhere, and its
// processes are replaced one after the other by those of this checkout.
import { setTimeout as sleep } from "node:timers/promises"
import type { FleetMember } from "../fleet/member.ts"
import type { Random } from "../random.ts"
import type { Fault } from "./fault.ts"

/** `fleet`: the processes, which run the former version when the fault begins. */
export const upgradeFault = (fleet: ReadonlyArray<FleetMember>, program: string): Fault => ({
  name: "rolling upgrade",
  nodes: [1, 3],
  plan: (random: Random) => {
    const order = random.shuffle(fleet)
    const pauses = order.map(() => random.between(500, 2_500))
    return {
      text: `SIGTERM, start this checkout: ${order.map(({ name }) => name).join(", ")}`,
      seconds: 0,
      holds: fleet.map(({ name }) => name),
      begin: async () => {
        for (const [i, member] of order.entries()) {
          await member.stop()
          member.program = program
          await member.start()
          await sleep(pauses[i]!)
        }
        return { mayRepeat: [], end: async () => {} }
      }
    }
  }
})
