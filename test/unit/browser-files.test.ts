// The files for browsers as they are made: small, and of a version that each of them names. The
// limits are those of src/browser/README.md, for client.js 7 KiB at gzip -9, and of
// src/browser/console/README.md.
import { readFileSync } from "node:fs"
import { gzipSync } from "node:zlib"
import { assert, it } from "vitest"
import { consoleFiles, firstWords, scripts, textOf, types } from "#browser/serving/files.ts"

const limits = { "client.js": 7 * 1024, "worker.js": 3_000, "words.js": 1_200 }

it.each(Object.entries(limits))("%s has at most %i bytes at gzip -9", (file, bytesMax) => {
  assert.isAtMost(gzipSync(textOf(file), { level: 9 }).length, bytesMax)
})

it("the files of the console have at most 65,000 bytes together at gzip -9", () => {
  const sizes = consoleFiles.map((name) => gzipSync(textOf(`console/${name}`), { level: 9 }).length)
  assert.isAtMost(
    sizes.reduce((sum, size) => sum + size),
    65_000
  )
})

it.each([...scripts, ...types])("the first line of %s says what it is, and its version", (file) => {
  const url = new URL("../../package.json", import.meta.url)
  const { version } = JSON.parse(readFileSync(url, "utf8")) as { readonly version: string }
  const [line = ""] = textOf(file).split("\n")
  assert.isTrue(line.startsWith(firstWords), line)
  assert.include(line, ` ${version}`)
})

it("worker.js runs behind a statement of the site that has no semicolon", () => {
  // Else the script, which is in parentheses, would be an argument of what stands before.
  assert.match(textOf("worker.js").split("\n")[1]!, /^;/)
})

it("says what to do where a file was not made", () => {
  assert.throws(() => textOf("none.js"), ".built/none.js is missing: `make install` makes the")
})
