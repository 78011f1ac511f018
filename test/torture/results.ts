// One line of JSON for each cycle, appended to a file: what was tried and what came of it.
// table.ts makes the table of the documents from these lines.
import { appendFileSync, mkdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Figures } from "./checks/check.ts"
import type { Nodes, StoreKind } from "./faults/fault.ts"

/** Results, and evidence of failed runs. Git ignores it. */
export const torturesFolder =
  process.env["TORTURE_FOLDER"] ?? fileURLToPath(new URL("../../.torture", import.meta.url))

export const resultsFile = join(torturesFolder, "results.jsonl")

export interface CycleResult extends Figures {
  /** ISO 8601. */
  readonly date: string
  /** Version and commit. */
  readonly version: string
  readonly seed: string
  readonly cycle: number
  readonly nodes: Nodes
  readonly store: StoreKind
  readonly faults: ReadonlyArray<string>
  readonly duplicatesMax: number
  readonly healSeconds: number
  readonly checks: { readonly passed: number; readonly failed: number }
}

export const appendResult = (result: CycleResult): void => {
  mkdirSync(dirname(resultsFile), { recursive: true })
  appendFileSync(resultsFile, `${JSON.stringify(result)}\n`)
}

export const readResults = (file: string): ReadonlyArray<CycleResult> =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as CycleResult)
