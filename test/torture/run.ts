// A run: cycles for some minutes, by one seed. Prints the schedule as it goes, appends a line of
// results for each cycle, and keeps the evidence of the first cycle that violates a promise.
import { execFileSync } from "node:child_process"
import { readFileSync, rmSync } from "node:fs"
import { mkdir, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type CycleOutcome, runCycle } from "./cycle.ts"
import { keepEvidence } from "./evidence.ts"
import { faultsOf, missingOf, storesOf } from "./faults/available.ts"
import type { Nodes } from "./faults/fault.ts"
import { upgradeFault } from "./faults/upgrade.ts"
import { thisProgram, unpackFormer, versionOf } from "./fleet/programs.ts"
import { type Cast, planOf } from "./plan.ts"
import { seeded } from "./random.ts"
import { appendResult } from "./results.ts"
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

const report = (outcome: CycleOutcome) => {
  const { duplicatesMax, figures, healSeconds, passed } = outcome
  const { acknowledged, descriptorsMax, duplicates, fastest, missed, paced, pushes } = figures
  const { erased, ownPauses, redriven, rssMax, trimmed } = figures
  say(
    `${acknowledged} broadcasts acknowledged, ${redriven} of them redrives, ` +
      `${pushes} pushes, ${missed} missed, ` +
      `${paced} broadcasts paced, at most at ${fastest} % of their rate, ` +
      `${ownPauses} own pauses, ${trimmed} old messages trimmed, ` +
      `${erased} users erased, ` +
      `${duplicates} of at most ${duplicatesMax} duplicates, healed in ${healSeconds} s, ` +
      `${rssMax} MiB, ${descriptorsMax} descriptors: ${passed} checks passed`
  )
  for (const [check, violation] of outcome.violations) say(`VIOLATED ${check}: ${violation}`)
}

const cycles = async (world: World, cast: Cast, options: RunOptions): Promise<RunOutcome> => {
  const end = performance.now() + options.minutes * 60_000
  let passed = 0
  for (let cycle = 1; cycle === 1 || (performance.now() < end && !options.isShort); cycle++) {
    const shape = { nodes: options.nodes, members: world.fleet }
    const { names, plan, store } = planOf(world.random, cast, shape, options.isShort, cycle)
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

/** Disks of faults under way, when the run is ended by Ctrl-C. */
const unmountBelow = (folder: string) => {
  const mounted = readFileSync("/proc/mounts", "utf8").split("\n")
  for (const line of mounted) {
    const [, path = ""] = line.split(" ")
    if (path.startsWith(`${folder}/`)) execFileSync("umount", ["--lazy", path])
  }
}

/** The earlier version; undefined where it cannot be had, which is said. */
const formerIn = (folder: string): string | undefined => {
  try {
    return unpackFormer(folder)
  } catch (error) {
    const [reason] = String(error).split("\n")
    say(`no rolling upgrade: the earlier commit cannot be unpacked: ${reason}`)
    return undefined
  }
}

export const run = async (options: RunOptions): Promise<RunOutcome> => {
  const { isShort, nodes, seed } = options
  const folder = await mkdtemp(join(tmpdir(), "bellcast-torture-"))
  process.once("exit", () => {
    unmountBelow(folder)
    rmSync(folder, { recursive: true, force: true })
  })
  try {
    await mkdir(folder, { recursive: true })
    const former = isShort ? undefined : formerIn(folder)
    say(`seed ${seed}, ${nodes} nats-server(s), version ${versionOf()}; folder ${folder}`)
    const random = seeded(seed)
    const program = former ?? thisProgram
    await using world = await startWorld({ nodes, isShort, folder, program, random, say })
    const { client, push } = world
    const faults = faultsOf(nodes, isShort, () => client, push.origins)
    const missing = await missingOf(faults)
    for (const [{ name }, why] of missing) say(`not on this machine: ${name}: ${why}`)
    const count = world.model.users.reduce((sum, one) => sum + one.subscriptions.length, 0)
    say(`${count} subscriptions of ${world.model.users.length} users; permits ${world.permits}`)
    const upgrade = former === undefined ? undefined : upgradeFault(world.fleet, thisProgram)
    const cast = { faults, stores: storesOf(faults), missing: new Set(missing.keys()), upgrade }
    return await cycles(world, cast, options)
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  }
}
