// The supervisors of the documents start Bellcast again, however often it ends: the unit of systemd
// by systemd's own checks, where it is installed, and compose.yaml.
import { execFileSync, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "vitest"
import { textOf } from "../support/documents.ts"

const [, unit = ""] = /^```ini\n(\[Unit\][\s\S]*?)^```$/m.exec(textOf("src/cli/README.md")) ?? []

const sectionOf = (name: string): ReadonlyArray<string> =>
  unit
    .split(/^(?=\[)/m)
    .find((part) => part.startsWith(`[${name}]`))
    ?.split("\n") ?? []

it("the unit is started again for ever, a while after its end", () => {
  assert.includeMembers([...sectionOf("Unit")], ["StartLimitIntervalSec=0"])
  const service = sectionOf("Service")
  assert.includeMembers([...service], ["Restart=always", "KillMode=mixed"])
  assert.isTrue(service.some((line) => /^RestartSec=[1-9]/.test(line)))
})

it("compose.yaml starts each container again", () => {
  const compose = textOf("compose.yaml")
  assert.match(compose, /^x-hardened: &hardened\n(?: .*\n)*? {2}restart: unless-stopped$/m)
  const [, services = ""] = /^services:\n([\s\S]*?)^volumes:/m.exec(compose) ?? []
  const names = [...services.matchAll(/^ {2}(\w+):\n(.*)\n/gm)]
  assert.isAbove(names.length, 1)
  for (const [, name, first] of names) assert.equal(first, "    <<: *hardened", name)
})

const analyze = (...args: ReadonlyArray<string>) =>
  spawnSync("systemd-analyze", args, { encoding: "utf8" })
const isInstalled = analyze("--version").status === 0

it.skipIf(!isInstalled)("systemd takes every line of the unit, and finds it hardened", () => {
  const folder = mkdtempSync(join(tmpdir(), "bellcast-unit-"))
  try {
    const file = join(folder, "bellcast.service")
    // The check demands that the program is there.
    const there = execFileSync("sh", ["-c", "command -v true"], { encoding: "utf8" }).trim()
    writeFileSync(file, unit.replace(/^ExecStart=\S+/m, `ExecStart=${there}`))
    const verified = analyze("verify", "--man=no", file)
    assert.deepEqual([verified.status, verified.stderr], [0, ""])
    // In tenths: 9.2 without any line of hardening.
    const checked = analyze("security", "--offline=true", "--threshold=20", file)
    assert.equal(checked.status, 0, checked.stdout)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
