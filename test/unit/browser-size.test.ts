// The files for browsers stay small: the limits are those of src/browser/README.md, for client.js
// 7 KiB at gzip -9.
import { readFileSync } from "node:fs"
import { gzipSync } from "node:zlib"
import { assert, it } from "vitest"

const limits = { "client.js": 7 * 1024, "worker.js": 3_000, "words.js": 1_200 }

it.each(Object.entries(limits))("%s has at most %i bytes at gzip -9", (file, bytesMax) => {
  const source = readFileSync(new URL(`../../.built/${file}`, import.meta.url))
  assert.isAtMost(gzipSync(source, { level: 9 }).length, bytesMax)
})
