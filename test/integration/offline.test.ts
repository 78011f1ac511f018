// `make install` where npm's registry does not answer, with a script in the place of npm.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, it } from "vitest"
import { temporaryFolder } from "../support/folder.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))

/** Output of `make install`, or of another target, in an empty checkout, and its exit code. */
const install = async (npm: string, target = "install") => {
  const folder = await temporaryFolder()
  for (const file of ["Makefile", "package.json", "package-lock.json"])
    copyFileSync(join(root, file), join(folder, file))
  // An empty program in the place of the one that makes the files for browsers.
  mkdirSync(join(folder, "src/browser"), { recursive: true })
  writeFileSync(join(folder, "src/browser/build.ts"), "")
  mkdirSync(join(folder, "bin"))
  mkdirSync(join(folder, "node_modules"))
  writeFileSync(join(folder, "bin", "npm"), `#!/bin/sh\n${npm}\n`, { mode: 0o755 })
  const path = `${join(folder, "bin")}:${dirname(process.execPath)}:/usr/bin:/bin`
  const env = { PATH: path, HOME: folder }
  const make = spawn("make", [target, "FETCH_PATIENCE=0.2"], { cwd: folder, env })
  let output = ""
  for (const stream of [make.stdout, make.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text
    })
  const [code] = await once(make, "close")
  return { code: code as number, output, folder }
}

/** Waits until `npm ping` has run, and half a second for the line that follows from its result. */
const untilPinged = "for i in $(seq 200); do [ -e pinged ] && break; sleep 0.1; done; sleep 0.5"

const npmOf = (ping: string, installing: string) => `case $1 in
  config) echo https://registry.example/ ;;
  ping) touch pinged; ${ping} ;;
  install) ${installing} ;;
esac`

it("says what is being fetched, and that the registry does not answer", async () => {
  const { code, output } = await install(npmOf("exit 1", `${untilPinged}; exit 1`))
  assert.notEqual(code, 0)
  assert.match(output, /^installing npm packages \.\.\.$/m)
  assert.match(output, /^npm's registry https:\/\/registry\.example\/ does not answer: check /m)
  assert.match(output, /^npm could not fetch npm packages from https:\/\/registry\.example\/$/m)
})

it("says that a slow registry is still being waited for", async () => {
  const installed = `${untilPinged}; touch node_modules/.package-lock.json`
  const { code, output } = await install(npmOf("exit 0", installed))
  assert.equal(code, 0, output)
  assert.match(output, /^still fetching from https:\/\/registry\.example\/ \.\.\.$/m)
  assert.notMatch(output, /does not answer|could not fetch/)
})

it("takes no Node but the one whose hash it knows", async () => {
  const node = ".tools/node_modules/node/bin/node"
  const hostile =
    `
    mkdir -p package/bin ${dirname(node)}
    echo evil > package/bin/node
    cp package/bin/node ${node}.new
    tar -czf ".tools/$(uname -sm | sed 's/Linux /node-linux-/; s/x86_64/x64/; s/aarch64/arm64/')-` +
    `$(sed -n 's/^NODE_VERSION := //p' Makefile).tgz" package
    [ $1 != install ] || mv ${node}.new ${node}`
  const { code, folder, output } = await install(hostile, node)
  assert.notEqual(code, 0)
  assert.match(output, /is not the Node that the Makefile names: its hash differs/)
  assert.isFalse(existsSync(join(folder, node)))
})

it("names a hash for each package that it installs, and runs no scripts of them", () => {
  const read = (file: string) => readFileSync(join(root, file), "utf8")
  const { packages } = JSON.parse(read("package-lock.json")) as {
    readonly packages: Readonly<Record<string, { readonly integrity?: string }>>
  }
  for (const [name, { integrity }] of Object.entries(packages))
    if (name !== "") assert.match(integrity ?? "", /^sha512-/, name)
  assert.include(read(".npmrc").split("\n"), "ignore-scripts=true")
})
