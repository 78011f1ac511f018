// One cycle: the load runs while faults come and go, then everything heals, then the checks look.
import { setTimeout as sleep } from "node:timers/promises"
import { audit } from "./checks/audit.ts"
import { type Check, type Figures, few, type Look } from "./checks/check.ts"
import { counts } from "./checks/counts.ts"
import { erased } from "./checks/erased.ts"
import { history } from "./checks/history.ts"
import { kept, registrations } from "./checks/kept.ts"
import { answers, logs } from "./checks/logs.ts"
import { changed, pauses } from "./checks/orders.ts"
import { noteOwners } from "./checks/owners.ts"
import { past } from "./checks/past.ts"
import { rates } from "./checks/rates.ts"
import { rebuild } from "./checks/rebuild.ts"
import { resources } from "./checks/resources.ts"
import { duplicates, once, sent } from "./checks/sent.ts"
import { noteStarts, starts } from "./checks/starts.ts"
import { stored } from "./checks/stored.ts"
import { verified } from "./checks/verified.ts"
import { perform } from "./faults/perform.ts"
import { type HealBounds, heal } from "./heal.ts"
import { startLoad } from "./load/load.ts"
import { patiently } from "./nats/patiently.ts"
import { watchStepsBack } from "./nats/steps-back.ts"
import type { Scheduled } from "./schedule.ts"
import type { World } from "./world.ts"

const checks: ReadonlyArray<Check> = [
  stored,
  starts,
  sent,
  once,
  duplicates,
  rates,
  changed,
  pauses,
  counts,
  kept,
  registrations,
  audit,
  // Before what may take minutes: old messages of erased users go meanwhile, by the trimmer.
  erased,
  verified,
  past,
  history,
  resources,
  answers,
  logs
]

export interface CyclePlan {
  readonly schedule: ReadonlyArray<Scheduled>
  readonly seconds: number
  readonly healBounds: HealBounds
  readonly rebuilds: boolean
  /** Not where nats-server may forget a value that the rig has seen. */
  readonly watches: boolean
}

export interface CycleOutcome {
  readonly figures: Figures
  readonly duplicatesMax: number
  readonly healSeconds: number
  /** By name of the check. */
  readonly violations: ReadonlyArray<readonly [string, string]>
  readonly passed: number
  readonly failed: number
}

const noFigures = (): Figures => ({
  acknowledged: 0,
  pushes: 0,
  missed: 0,
  duplicates: 0,
  endedOtherwise: 0,
  redriven: 0,
  paced: 0,
  fastest: 0,
  ownPauses: 0,
  trimmed: 0,
  erased: 0,
  rssMax: 0,
  descriptorsMax: 0
})

const runCheck = async ({ name, run }: Check, look: Look) => {
  const found = await run(look).catch((error) => [`could not be checked: ${error}`])
  return found.map((violation) => [name, violation] as const)
}

/** Load and faults; resolves with what the faults may have repeated. */
const trouble = async (world: World, { schedule, seconds }: CyclePlan, cycle: number) => {
  const { changes, guests, model, publish, random, redrive } = world
  const [broadcastMillis, changeMillis] = world.rates
  const own = random.fork(`load ${cycle}`)
  const load = startLoad({
    model,
    changes,
    publish,
    guests,
    redrive,
    erase: world.mayPause ? world.erase : undefined,
    random: own,
    broadcastMillis,
    changeMillis
  })
  const start = performance.now()
  const performed = await perform(schedule, world)
  await sleep(Math.max(0, seconds * 1000 - (performance.now() - start)))
  load.stop()
  for (const member of world.fleet) await member.start()
  return { ...performed, load }
}

export const runCycle = async (
  world: World,
  plan: CyclePlan,
  cycle: number
): Promise<CycleOutcome> => {
  world.cycle = cycle
  const watch = plan.watches ? watchStepsBack(world.client) : undefined
  const healing = new AbortController()
  const resumed = world.mayPause ? world.resumes(healing.signal) : undefined
  const { failures, load, repeats } = await trouble(world, plan, cycle)
  const { fleet, model, nats, recorded } = world
  const healed = await heal(
    { fleet, model, nats, recorded, pending: load.pending },
    plan.healBounds
  )
  healing.abort()
  await resumed
  world.say(`healed in ${healed.seconds} s; ${healed.ailments.join("; ")}`)
  await watch?.stop()
  // What did not heal is judged by all that was recorded, too.
  await recorded.update().catch((error) => world.say(`WORK and LOG cannot be read: ${error}`))
  noteStarts(model, recorded)
  noteOwners(model, recorded)
  const figures = noFigures()
  const duplicatesMax = world.permits * repeats
  const look: Look = {
    ...world.looking(),
    cycle,
    duplicatesMax,
    figures,
    random: world.random.fork(`checks ${cycle}`)
  }
  const violations: Array<readonly [string, string]> = [
    ...failures.map((failure) => ["the rig", failure] as const),
    ...healed.ailments.map((ailment) => ["healed in time", ailment] as const),
    ...few(watch?.found ?? []).map((step) => ["entries never go back", step] as const)
  ]
  const wanted = healed.ailments.length > 0 || !plan.rebuilds ? checks : [...checks, rebuild]
  let failed = violations.length > 0 ? 1 : 0
  for (const check of wanted) {
    const found = await runCheck(check, look)
    if (found.length > 0) failed++
    violations.push(...found)
  }
  // The checks took their time, and the next cycle takes some, in which messages become old.
  if (failed === 0)
    await patiently(async () => {
      await recorded.update()
      await recorded.expireWork()
    })
  const passed = wanted.length + 1 - failed
  return { figures, duplicatesMax, healSeconds: healed.seconds, violations, passed, failed }
}
