// What `npm install --omit=dev` brings into the image, by the lock file.
import { readFileSync } from "node:fs"
import { assert, it } from "vitest"

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: true; readonly optional?: true }>>
}

const lock: Lock = JSON.parse(
  readFileSync(new URL("../../package-lock.json", import.meta.url), "utf8")
)

it("brings no client of a database into production", () => {
  const names = Object.entries(lock.packages)
    .filter(([path, { dev }]) => path !== "" && dev !== true)
    .map(([path]) => path.replace(/^.*node_modules\//, ""))
  assert.include(names, "effect")
  assert.deepEqual(
    names.filter((name) => /redis|postgres|mysql|sqlite/.test(name)),
    []
  )
})
