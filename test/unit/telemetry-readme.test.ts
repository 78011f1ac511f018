// src/telemetry/README.md agrees with the code: every metric with its type and labels.
import { Context, Metric } from "effect"
import { assert, describe, it } from "vitest"
import { CacheMemory, cacheNames } from "#memory/cache-memory.ts"
import { showCaches } from "#memory/upkeep.ts"
import { isOfProcess, watchProcess } from "#telemetry/process-metrics.ts"
import { spansOf, textOf } from "../support/documents.ts"

const readme = textOf("src/telemetry/README.md")
const code = ["delivery", "request", "nats"]
  .map((name) => textOf(`src/telemetry/${name}-metrics.ts`))
  .join("\n")

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
    const defined = [...code.matchAll(/=>?\s+(\w+)\(\s*"(bellcast_\w+)"/g)].map(
      ([, type, name]) => [name, type!.replace(/^read/, "").toLowerCase()]
    )
    assert.isNotEmpty(defined)
    assert.sameDeepMembers(
      rows.filter(({ name }) => !isOfProcess(name)).map(({ name, type }) => [name, type]),
      defined
    )
  })

  // The other ones are series, read from the registry.
  it.runIf(process.platform === "linux")("lists every metric of the process", () => {
    const watch = watchProcess(["gateway"])
    const caches = showCaches(new CacheMemory(0))
    const series = Metric.snapshotUnsafe(Context.empty()).filter(({ id }) => isOfProcess(id))
    watch.stop()
    for (const { remove } of caches) remove()
    const shown = series.map(({ attributes = {}, id, type }) => ({
      name: id,
      type: type.toLowerCase(),
      labels: Object.keys(attributes)
    }))
    for (const row of shown) assert.deepInclude(rows, row)
    for (const { name } of rows.filter(({ name }) => isOfProcess(name)))
      assert.include(
        shown.map((row) => row.name),
        name
      )
  })

  it("says what each cache is", () => {
    const row = readme.split("\n").find((line) => line.startsWith("| `bellcast_cache_bytes`"))!
    assert.includeMembers([...spansOf(row)], [...cacheNames])
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
    const ofService = rows.filter(({ name }) => !isOfProcess(name))
    for (const label of new Set(ofService.flatMap(({ labels }) => labels)))
      assert.match(code, new RegExp(`\\b${label}\\b[ ,:}]`), label)
  })
})
