// Settings that had another name in earlier versions.
import { devNull } from "node:os"
import { assert, describe, it } from "@effect/vitest"
import { readSource } from "#settings/source.ts"
import { unknownSettings } from "#settings/unknown-settings.ts"

const sourceOf = (env: Readonly<Record<string, string>>) =>
  readSource({ BELLCAST_CONFIG: devNull, ...env })
const [former, present] = ["BELLCAST_CONNECTIONS_PER_ORIGIN", "BELLCAST_PUSHES_UNDER_WAY_MAX"]

describe("a setting under its former name", () => {
  it("counts, with a warning that tells the present name", () => {
    const source = sourceOf({ [former]: "8" })
    assert.strictEqual(source.found.get(present)?.value, "8")
    const { faults, warnings } = unknownSettings(source, [present, "BELLCAST_CONFIG"])
    assert.deepEqual(faults, [])
    assert.deepEqual(warnings, [`${former}: the former name of ${present}, still understood`])
  })

  it("gives way to the present name", () => {
    assert.strictEqual(sourceOf({ [former]: "8", [present]: "9" }).found.get(present)?.value, "9")
  })
})
