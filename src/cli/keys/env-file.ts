// Adds missing secrets to an environment file. Existing lines never change.
import { chmod, open, readFile } from "node:fs/promises"
import * as Effect from "effect/Effect"
import { createOnce } from "#secrets/once.ts"
import { failed, VerbFailed } from "../terminal/output.ts"
import { type Part, textOf } from "./lines.ts"

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code

/** The value of a name; of several lines the last. Undefined: there is no such line. */
const valueIn = (text: string, name: string): string | undefined =>
  [...text.matchAll(new RegExp(`^[ \\t]*(?:export[ \\t]+)?${name}[ \\t]*=(.*)$`, "gm"))]
    .at(-1)?.[1]
    ?.trim()

/**
 * The parts that a file lacks. A secret without a value counts as missing. `fault`: the file has
 * one half of a pair, which a new half would not fit.
 */
export const missingParts = (
  text: string,
  parts: ReadonlyArray<Part>
): { readonly missing: ReadonlyArray<Part>; readonly fault: string | undefined } => {
  const missing: Array<Part> = []
  for (const part of parts) {
    const entries = Object.entries(part.values)
    const absent = entries.filter(([name, value]) => {
      const there = valueIn(text, name)
      return there === undefined || (there === "" && value !== "")
    })
    if (absent.length === entries.length) missing.push(part)
    else if (absent.length > 0) {
      const names = absent.map(([name]) => name).join(", ")
      return { missing: [], fault: `${names} is missing beside the other half of the pair` }
    }
  }
  return { missing, fault: undefined }
}

/** Makes the file readable by its owner only, then appends. */
const append = async (file: string, text: string, before: string): Promise<void> => {
  const handle = await open(file, "a")
  try {
    await handle.chmod(0o600)
    await handle.writeFile(before === "" || before.endsWith("\n") ? text : `\n${text}`)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const readIfThere = (file: string): Promise<string | undefined> =>
  readFile(file, "utf8").catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  })

const add = async (file: string, parts: ReadonlyArray<Part>): Promise<ReadonlyArray<Part>> => {
  const found = await readIfThere(file)
  if (found === undefined) {
    const fresh = `${textOf(parts)}\n`
    await createOnce(file, fresh)
    // Another process may have made the file at the same moment.
    return (await readFile(file, "utf8")) === fresh ? parts : []
  }
  const { fault, missing } = missingParts(found, parts)
  if (fault !== undefined) throw failed(`${file}: ${fault}`)
  if (missing.length === 0) await chmod(file, 0o600)
  else await append(file, `${textOf(missing)}\n`, found)
  return missing
}

/** Adds to the file (mode 0600) the parts that it lacks. Returns the names of what was added. */
export const addToFile = (file: string, parts: ReadonlyArray<Part>) =>
  Effect.tryPromise({
    try: () => add(file, parts),
    catch: (error) =>
      error instanceof VerbFailed ? error : failed(`${file} cannot be written (${codeOf(error)})`)
  }).pipe(Effect.map((added) => added.flatMap(({ values }) => Object.keys(values))))
