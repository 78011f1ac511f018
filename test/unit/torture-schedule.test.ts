// The schedule of the torture rig comes from the seed alone, so that a seed that failed replays.
import { assert, describe, it } from "vitest"
import { faultsOf, storesOf } from "../torture/faults/available.ts"
import type { Nodes } from "../torture/faults/fault.ts"
import { membersOf } from "../torture/fleet/fleet.ts"
import { planOf } from "../torture/plan.ts"
import type { Origin } from "../torture/push/origin.ts"
import { seeded } from "../torture/random.ts"

const origins = (["h1", "h2"] as const).map(
  (protocol, i) => ({ name: `${protocol}-${i + 1}`, protocol }) as Origin
)

const notConnected = () => {
  throw new Error("planning needs no connection")
}

const schedules = (seed: string, nodes: Nodes, isShort = false, missing = new Set<string>()) => {
  const faults = faultsOf(nodes, isShort, notConnected, origins)
  const cast = {
    faults,
    stores: storesOf(faults),
    missing: new Set(faults.filter(({ name }) => missing.has(name))),
    upgrade: undefined
  }
  const shape = { nodes, members: membersOf(isShort) }
  return Array.from({ length: isShort ? 1 : 20 }, (_, i) => {
    const { plan, store } = planOf(seeded(seed), cast, shape, isShort, i + 1)
    return { store, faults: plan.schedule.map(({ at, planned }) => `${at} ${planned.text}`) }
  })
}

describe("the schedule of the torture rig", () => {
  it("is the same for the same seed, and another one for another seed", () => {
    assert.deepEqual(schedules("1", 3), schedules("1", 3))
    assert.notDeepEqual(schedules("1", 3), schedules("2", 3))
  })

  it("only loses the faults that a machine cannot have", () => {
    const all = schedules("1", 1).map(({ faults }) => faults)
    const some = schedules("1", 1, false, new Set(["power loss"])).map(({ faults }) => faults)
    const without = all.map((faults) => faults.filter((text) => !text.includes("power loss")))
    assert.notDeepEqual(all, without)
    assert.deepEqual(some, without)
  })

  it("freezes lease holders and fills WORK within any four cycles after the first", () => {
    for (let seed = 1; seed <= 20; seed++) {
      const faults = schedules(String(seed), 1)
        .slice(1, 5)
        .flatMap((cycle) => cycle.faults)
      for (const kind of [/in turn: fold/, /bytes left/])
        assert.isTrue(
          faults.some((text) => kind.test(text)),
          `seed ${seed}, ${kind}: ${faults.join("; ")}`
        )
    }
  })

  it("has in the run of CI a kill, a freeze, a cut, a full stream and bad push services", () => {
    for (let seed = 1; seed <= 50; seed++) {
      const faults = schedules(String(seed), 1, true).flatMap((cycle) => cycle.faults)
      for (const kind of [/kill -9/, /SIGSTOP/, /connections of/, / full for /, /h[12]-\d/])
        assert.isTrue(
          faults.some((text) => kind.test(text)),
          `seed ${seed}, ${kind}: ${faults.join("; ")}`
        )
    }
  })
})
