// Loaded before the program of a process or command (`node --import`): the program of this checkout
// runs with the times of days.ts. Everything else in it stays as it is.
import { registerHooks } from "node:module"
import { dayMillis, endedMillis, lookMillis, renewableMillis } from "./days.ts"

/** In a file of the product: what it says, and what it says in the rig. */
interface Changed {
  readonly file: string
  readonly from: string
  readonly to: string
}

const changed: ReadonlyArray<Changed> = [
  {
    file: "/src/domain/history.ts",
    from: "const dayMillis = 24 * 60 * 60_000",
    to: `const dayMillis = ${dayMillis}`
  },
  {
    file: "/src/projection/trim.ts",
    from: "const lookMillis = 60 * 60_000",
    to: `const lookMillis = ${lookMillis}`
  },
  {
    file: "/src/projection/forget.ts",
    from: "defaultValue: () => 3_600_000",
    to: `defaultValue: () => ${endedMillis}`
  },
  {
    file: "/src/domain/subscription/tombstone.ts",
    from: "renewableMillisMax = 30 * 24 * 60 * 60_000",
    to: `renewableMillisMax = ${renewableMillis}`
  }
]

registerHooks({
  load: (url, context, nextLoad) => {
    const loaded = nextLoad(url, context)
    const change = changed.find(({ file }) => url.endsWith(file))
    if (change === undefined) return loaded
    const { from, to } = change
    const parts = String(loaded.source).split(from)
    if (parts.length !== 2) throw new Error(`${url} does not say once: ${from}`)
    return { ...loaded, source: parts.join(to) }
  }
})
