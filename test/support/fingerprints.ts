// A fingerprint of the schema of each number of each message. As a program (`make fingerprints`) it
// records those that are new, and changes none.
import { createHash } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import * as Representation from "effect/SchemaRepresentation"
import { schemas } from "#domain/messages/forms.ts"

const file = new URL("../../src/domain/messages/fingerprints.json", import.meta.url)

type Fingerprints = Readonly<Record<string, string>>

/** The data that a schema accepts; the code of a filter of our own is not seen. */
export const fingerprints = (): Fingerprints =>
  Object.fromEntries(
    [...schemas].map(([type, { ast }]) => {
      const text = JSON.stringify(Representation.toRepresentation(ast))
      return [type, createHash("sha256").update(text).digest("hex").slice(0, 16)]
    })
  )

export const recorded = (): Fingerprints => JSON.parse(readFileSync(file, "utf8")) as Fingerprints

if (import.meta.main) {
  const all = { ...fingerprints(), ...recorded() }
  const lines = Object.entries(all).map(([type, print]) => `  "${type}": "${print}"`)
  writeFileSync(file, `{\n${lines.sort().join(",\n")}\n}\n`)
}
