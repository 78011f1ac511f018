// `make bench ARGS=sizes`: what the browser's half costs a visitor, in bytes as they are served.
import { readdirSync, readFileSync } from "node:fs"
import { gzipSync } from "node:zlib"

const folder = new URL("../../.built/", import.meta.url)
for (const file of readdirSync(folder).filter((name) => name.endsWith(".js"))) {
  const source = readFileSync(new URL(file, folder))
  const { length } = gzipSync(source, { level: 9 })
  console.log(`${file}: ${length} bytes gzipped, ${source.length} plain`)
}
