// src/telemetry/README.md agrees with the code: every metric with its type and labels, and alert
// rules that name only metrics and labels that exist.
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { described } from "#telemetry/process-metrics.ts"

const text = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")
const processRows = Object.entries(described).map(([name, [type]]) => [name, type])
const readme = text("src/telemetry/README.md")
const code = ["delivery", "http", "identity", "nats", "process"]
  .map((name) => text(`src/telemetry/${name}-metrics.ts`))
  .join("\n")

const spansOf = (cell: string): ReadonlyArray<string> =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, span]) => span!)

const rows = readme
  .split("\n")
  .filter((line) => /^\| `(bellcast|process|nodejs)_/.test(line))
  .map((line) => line.split("|").slice(1, 5))
  .map(([name, type, labels]) => ({
    name: spansOf(name!)[0]!,
    type: type!.trim(),
    labels: spansOf(labels!)
  }))

describe("the README of telemetry", () => {
  it("lists every metric with its type, and no other", () => {
    const defined = [...code.matchAll(/Metric\.(\w+)\(\s*"(\w+)"/g)].map(([, type, name]) => [
      name,
      type
    ])
    assert.isNotEmpty(defined)
    assert.sameDeepMembers(
      rows.map(({ name, type }) => [name, type]),
      [...defined, ...processRows]
    )
  })

  it("uses base units, and names that Prometheus recommends", () => {
    for (const { name, type } of rows) {
      assert.equal(name.endsWith("_total"), type === "counter", name)
      assert.notMatch(
        name,
        /milli|micro|minutes|hours|days|_(kilo|mega)?bits|kilobytes|megabytes|[A-Z]/
      )
    }
  })

  it("names only labels that the code sets", () => {
    for (const label of new Set(rows.flatMap(({ labels }) => labels)))
      assert.match(code, new RegExp(`\\b${label}\\b[ ,:}]`), label)
  })

  it("alerts on metrics that exist, by labels that they have", () => {
    const rules = /```yaml\n(groups:.*?)```/s.exec(readme)?.[1] ?? ""
    const used = [...rules.matchAll(/(bellcast_\w+)(?:\{(\w+)=)?/g)]
    assert.isNotEmpty(used)
    for (const [, name, label] of used) {
      const row = rows.find((each) => each.name === name)
      assert.isDefined(row, name)
      if (label !== undefined) assert.include(row!.labels, label)
    }
  })
})
