// The files that browsers load, as `make install` has made them: gateways serve them, and
// `bellcast client` copies those that sites need.
import { existsSync, readFileSync } from "node:fs"

/** A script that is put together of modules in `src/browser/`. */
interface Bundle {
  /** The module that imports the others. */
  readonly from: string
  /** `iife` for a script that is no module, such as one that `importScripts` loads. */
  readonly format: "es" | "iife"
  /** The file of what it imports by `import()`, beside it: not every page loads that. */
  readonly later?: string
}

/** By their paths below `/v1/`. The script of a page of ours has a line here, too. */
export const bundles: Readonly<Record<string, Bundle>> = {
  "client.js": { from: "client/connect.ts", format: "es" },
  "words.js": { from: "client/words.ts", format: "es" },
  "worker.js": { from: "worker/worker.ts", format: "iife" },
  "console/console.js": { from: "console/console.tsx", format: "es", later: "try.js" }
}

/** Files that are served as they are: pages with their styles and pictures, plain scripts. */
export const isCopied = (path: string): boolean => /^console\/[^/]+\.(html|js|svg)$/.test(path)

/** Style sheets that are put together of those in a folder. */
export const sheets: Readonly<Record<string, string>> = {
  "console/console.css": "console/styles/"
}

/** The scripts that sites load. */
export const scripts = ["client.js", "worker.js", "words.js"] as const

/** Their types: copied beside them, and not served. */
export const types = ["client.d.ts", "worker.d.ts", "words.d.ts"] as const

/** The console, in `console/`. `fragment.js` runs first, and takes a login out of the address. */
export const consoleFiles = [
  "index.html",
  "fragment.js",
  "console.css",
  "console.js",
  "icon.svg"
] as const

/** In development, where the console shows a push in this browser: that tab, its service worker. */
export const consoleTrialFiles = ["try.js", "worker.js"] as const

/** The languages of its texts. */
export const consoleLanguages = ["en", "de"] as const

/** Beginning of the first line of each file, in every version. Copies are recognised by it. */
export const firstWords = "// Bellcast's "

/** A file is missing, as in a checkout without `make install`. */
export class NotBuilt extends Error {
  constructor(name: string) {
    super(`.built/${name} is missing: \`make install\` makes the files for browsers`)
  }
}

/** By way of the root: a bundle of the service is as deep below it as this file. */
const placeOf = (name: string): URL => new URL(`../../../.built/${name}`, import.meta.url)

/** Throws where a file is missing that sites load: a gateway without it must not start. */
export const requireScripts = (): void => {
  for (const name of scripts) if (!existsSync(placeOf(name))) throw new NotBuilt(name)
}

/** The text of a file in `.built/`. */
export const textOf = (name: string): string => {
  const place = placeOf(name)
  if (!existsSync(place)) throw new NotBuilt(name)
  return readFileSync(place, "utf8")
}
