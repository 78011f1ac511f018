// Keeps what a violated promise left behind: logs of all processes, a dump of the streams, and what
// was violated.
import { createWriteStream } from "node:fs"
import { cp, mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import type { CycleOutcome } from "./cycle.ts"
import { readStream } from "./nats/read.ts"
import { torturesFolder } from "./results.ts"
import type { World } from "./world.ts"

const dump = async (world: World, stream: string, file: string) => {
  const out = createWriteStream(file)
  await readStream(world.client, stream, [], 1, (message) => {
    const headers = Object.fromEntries(message.headers ?? [])
    const { seq, subject } = message
    const at = message.time.toISOString()
    out.write(`${JSON.stringify({ seq, at, subject, headers, data: message.string() })}\n`)
  }).catch((error) => out.write(`could not be read: ${error}\n`))
  await new Promise((resolve) => out.end(resolve))
}

/** Returns the folder. */
export const keepEvidence = async (
  world: World,
  seed: string,
  { violations }: CycleOutcome
): Promise<string> => {
  const stamp = new Date().toISOString().replaceAll(":", "-").slice(0, 19)
  const folder = join(torturesFolder, `seed-${seed}-${stamp}`)
  await mkdir(folder, { recursive: true })
  const text = violations.map(([check, violation]) => `${check}: ${violation}\n`).join("")
  await writeFile(join(folder, "violations.txt"), text)
  for (const { logFile, name } of world.fleet) await cp(logFile, join(folder, `${name}.log`))
  for (const [name, file] of Object.entries(world.nats.logFiles))
    await cp(file, join(folder, `${name}.log`)).catch(() => {})
  for (const stream of ["BELLCAST_LOG", "BELLCAST_WORK"])
    await dump(world, stream, join(folder, `${stream}.jsonl`))
  const broadcasts = [...world.model.broadcasts.values()].map((one) => JSON.stringify(one))
  await writeFile(join(folder, "broadcasts.jsonl"), `${broadcasts.join("\n")}\n`)
  return folder
}
