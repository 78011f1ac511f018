// `make bench ARGS=sizes`: what the browser's half costs a visitor, and the console an editor, in
// bytes as they are served.
import { readdirSync, readFileSync } from "node:fs"
import { gzipSync } from "node:zlib"
import { consoleFiles } from "#browser/serving/files.ts"

const folder = new URL("../../.built/", import.meta.url)

const print = (file: string): number => {
  const source = readFileSync(new URL(file, folder))
  const { length } = gzipSync(source, { level: 9 })
  console.log(`${file}: ${length} bytes gzipped, ${source.length} plain`)
  return length
}

for (const file of readdirSync(folder).filter((name) => name.endsWith(".js"))) print(file)
const all = consoleFiles.reduce((sum, name) => sum + print(`console/${name}`), 0)
console.log(`console, in all: ${all} bytes gzipped`)
