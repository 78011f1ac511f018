// A run: cycles for some minutes, by one seed. Prints the schedule as it goes, appends a line of
// results for each cycle, and keeps the evidence of the first cycle that violates a promise.
import { rmSync } from "node:fs"
import { mkdir, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type CycleOutcome, type CyclePlan, runCycle } from "./cycle.ts"
import { keepEvidence } from "./evidence.ts"
import { availableFaults, storesOf } from "./faults/available.ts"
import type { Fault, Nodes, StoreKind } from "./faults/fault.ts"
import { upgradeFault } from "./faults/upgrade.ts"
import { thisProgram, unpackFormer, versionOf } from "./fleet/programs.ts"
import { seeded } from "./random.ts"
import { appendResult } from "./results.ts"
import { planCycle } from "./schedule.ts"
import { startWorld, type World } from "./world.ts"

export interface RunOptions {
  readonly seed: string
  readonly minutes: number
  readonly nodes: Nodes
  /** One cycle with few faults, for CI. */
  readonly isShort: boolean
}

export interface RunOutcome {
  readonly passed: number
  readonly failed: number
}

const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${text}`)

/** The guard of a push service that calls everybody gone sends its first probe after a minute. */
const guardSeconds = 240
const healSecondsMax = (nodes: Nodes, faults: ReadonlyArray<string>): number =>
  (nodes === 1 ? 120 : 180) + (faults.some((name) => name.includes("410")) ? guardSeconds : 0)

interface Cast {
  readonly faults: ReadonlyArray<Fault>
  readonly stores: ReadonlyArray<StoreKind>
  /** In the first cycle, when the run began with version 0.1.0. */
  readonly upgrade: Fault | undefined
}

const planOf = (world: World, cast: Cast, options: RunOptions, cycle: number) => {
  const { isShort, nodes } = options
  const random = world.random.fork(`cycle ${cycle}`)
  const store = cycle === 1 ? "plain" : random.pick(cast.stores)
  const shape = { nodes, members: world.fleet }
  const window = isShort
    ? { seconds: 30, faults: [7, 7] as const }
    : { seconds: random.between(35, 45), faults: [4, 8] as const }
  const fitting = cast.faults.filter((fault) => fault.store === undefined || fault.store === store)
  const { upgrade } = cast
  const isUpgrade = cycle === 1 && upgrade !== undefined
  const schedule = isUpgrade
    ? [{ fault: upgrade, planned: upgrade.plan(random, shape, window.seconds), at: 4 }]
    : planCycle(random, fitting, shape, window)
  const names = schedule.map(({ fault }) => fault.name)
  const plan: CyclePlan = {
    schedule,
    seconds: window.seconds,
    healSecondsMax: healSecondsMax(nodes, names),
    rebuilds: isShort || cycle % 3 === 0
  }
  return { plan, store, names }
}

const report = (outcome: CycleOutcome) => {
  const { duplicatesMax, figures, healSeconds, passed } = outcome
  const { acknowledged, descriptorsMax, duplicates, missed, pushes, rssMax } = figures
  say(
    `${acknowledged} broadcasts acknowledged, ${pushes} pushes, ${missed} missed, ` +
      `${duplicates} of at most ${duplicatesMax} duplicates, healed in ${healSeconds} s, ` +
      `${rssMax} MiB, ${descriptorsMax} descriptors: ${passed} checks passed`
  )
  for (const [check, violation] of outcome.violations) say(`VIOLATED ${check}: ${violation}`)
}

const cycles = async (world: World, cast: Cast, options: RunOptions): Promise<RunOutcome> => {
  const end = performance.now() + options.minutes * 60_000
  let passed = 0
  for (let cycle = 1; cycle === 1 || (performance.now() < end && !options.isShort); cycle++) {
    const { names, plan, store } = planOf(world, cast, options, cycle)
    say(`cycle ${cycle}: ${plan.seconds} s, store ${store}, ${names.length} faults`)
    await world.nats.useStore(store)
    const outcome = await runCycle(world, plan, cycle)
    report(outcome)
    const { duplicatesMax, figures, healSeconds } = outcome
    const checks = { passed: outcome.passed, failed: outcome.failed }
    const date = new Date().toISOString()
    const { nodes, seed } = options
    const tried = { version: versionOf(), seed, cycle, nodes, store, faults: names }
    appendResult({ date, ...tried, ...figures, duplicatesMax, healSeconds, checks })
    passed += outcome.passed
    if (outcome.failed > 0) {
      say(`evidence: ${await keepEvidence(world, options.seed, outcome)}`)
      return { passed, failed: outcome.failed }
    }
  }
  return { passed, failed: 0 }
}

export const run = async (options: RunOptions): Promise<RunOutcome> => {
  const { isShort, nodes, seed } = options
  const folder = await mkdtemp(join(tmpdir(), "bellcast-torture-"))
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }))
  try {
    await mkdir(folder, { recursive: true })
    const former = isShort ? undefined : unpackFormer(folder)
    if (former === undefined && !isShort)
      say("no rolling upgrade: the commit of version 0.1.0 is not in this clone")
    say(`seed ${seed}, ${nodes} nats-server(s), version ${versionOf()}; folder ${folder}`)
    const random = seeded(seed)
    const program = former ?? thisProgram
    await using world = await startWorld({ nodes, isShort, folder, program, random, say })
    const { client, push } = world
    const { faults, missing } = await availableFaults(nodes, isShort, () => client, push.origins)
    for (const each of missing) say(`not on this machine: ${each}`)
    const count = world.model.users.reduce((sum, one) => sum + one.subscriptions.length, 0)
    say(`${count} subscriptions of ${world.model.users.length} users; permits ${world.permits}`)
    const upgrade = former === undefined ? undefined : upgradeFault(world.fleet, thisProgram)
    return await cycles(world, { faults, stores: storesOf(faults), upgrade }, options)
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  }
}
