// `make torture`: SEED, MINUTES and NODES in the environment; `--short` is the run of CI. Prints
// how to repeat a seed that failed. The last line is "N passed, N failed".
import { run } from "./run.ts"

const isShort = process.argv.includes("--short")
const { MINUTES = "5", NODES = "1", SEED = "1" } = process.env

const usage = (what: string): never => {
  console.error(`${what}. Usage: make torture SEED=1 MINUTES=5 NODES=1 (or NODES=3)`)
  process.exit(2)
}

if (NODES !== "1" && NODES !== "3") usage(`NODES is 1 or 3, not "${NODES}"`)
const minutes = Number(MINUTES)
if (!(minutes > 0)) usage(`MINUTES is a number above 0, not "${MINUTES}"`)

process.once("SIGINT", () => process.exit(130))
process.once("SIGTERM", () => process.exit(143))

const nodes = NODES === "3" ? 3 : 1
const outcome = await run({ seed: SEED, minutes, nodes, isShort }).catch((error) => {
  console.error(error)
  return { passed: 0, failed: 1 }
})
if (outcome.failed > 0)
  console.log(`failed: make torture SEED=${SEED} MINUTES=${MINUTES} NODES=${NODES}`)
console.log(`${outcome.passed} passed, ${outcome.failed} failed`)
process.exit(outcome.failed > 0 ? 1 : 0)
