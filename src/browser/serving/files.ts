// The files that sites load: gateways serve them, and `bellcast client` copies them.
import { readFileSync } from "node:fs"

export const scripts = ["client.js", "worker.js", "words.js"] as const

/** Their types: copied beside them, and not served. */
export const types = ["client.d.ts", "worker.d.ts", "words.d.ts"] as const

/** The page that shows them at work, in `demo/`; gateways serve it in development. */
export const demoFiles = [
  "index.html",
  "demo.css",
  "demo.js",
  "breaks.js",
  "channels.js",
  "devices.js",
  "elements.js",
  "site.js",
  "underneath.js",
  "words.js",
  "worker.js",
  "bell.svg"
] as const

/** Beginning of the first line of each file, in every version. Copies are recognised by it. */
export const firstWords = "// Bellcast's "

/** The text of a file of `src/browser/`. */
export const textOf = (name: string): string =>
  // By way of the root: a bundle of the service is as deep below it as this file.
  readFileSync(new URL(`../../../src/browser/${name}`, import.meta.url), "utf8")
