// src/telemetry/alerts.yml, runbook.md and dashboard.json agree with each other and with the
// metrics that there are.
import { assert, describe, it } from "vitest"
import { buckets } from "#streams/buckets.ts"
import { spansOf, textOf } from "../support/documents.ts"

const rules = textOf("src/telemetry/alerts.yml")
const runbook = textOf("src/telemetry/runbook.md")
const dashboard = textOf("src/telemetry/dashboard.json")
const readme = textOf("src/telemetry/README.md")

/** The metrics of the README with their labels; a test compares them with the code. */
const metrics = new Map(
  readme
    .split("\n")
    .filter((line) => /^\| `(bellcast|process|nodejs)_/.test(line))
    .map((line) => line.split("|").slice(1, 4))
    .map(([name, , labels]) => [spansOf(name!)[0]!, [...spansOf(labels!)]] as const)
)
/** Those that Prometheus adds, and the series of histograms. */
const nameOf = (text: string): string => text.replace(/_(bucket|sum|count)$/, "")

const alerts = rules.split(/^ {6}- alert: /m).slice(1)
const nameOfAlert = (text: string) => /^\w+/.exec(text)![0]

/** The queries of the rules and of the dashboard. */
const panels = (JSON.parse(dashboard) as { panels: ReadonlyArray<Panel> }).panels
interface Panel {
  readonly title: string
  readonly targets?: ReadonlyArray<{ readonly expr: string }>
}
const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))

describe("the alerts", () => {
  it("name only metrics that there are, by labels that they have", () => {
    assert.isAbove(alerts.length, 20)
    assert.isAbove(queries.length, 30)
    const uncommented = rules.replaceAll(/^ *#.*$/gm, "")
    for (const text of [uncommented, ...queries]) {
      const used = [...text.matchAll(/\b((?:bellcast|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)]
      for (const [, name, selector = ""] of used) {
        const labels = metrics.get(nameOf(name!)) ?? metrics.get(name!)
        assert.isDefined(labels, name)
        // Another installation in the same Prometheus must neither ring nor silence this one.
        assert.match(selector, /^job="bellcast"/, name)
        for (const [, label] of selector.matchAll(/(\w+)[=!]/g))
          if (label !== "job") assert.include(labels, label!, name)
      }
    }
    // A recorded series stands before its use.
    for (const [name] of rules.matchAll(/bellcast:\w+/g))
      assert.include(rules, `- record: ${name}\n`)
  })

  it("have a severity, a summary and their heading in the runbook, and it has no other", () => {
    for (const each of alerts) {
      const name = nameOfAlert(each)
      assert.match(each, /labels: \{ severity: (page|ticket) \}/, name)
      assert.include(each, "summary:", name)
      assert.include(each, `runbook: runbook.md#${name.toLowerCase()}\n`, name)
    }
    const headings = [...runbook.matchAll(/^## (\w+)$/gm)].map(([, name]) => name!)
    assert.deepEqual(headings, [...new Set(headings)])
    assert.sameMembers(headings, alerts.map(nameOfAlert))
  })

  it("say in the runbook what users notice, the cause, how to look and the cure", () => {
    for (const section of runbook.split(/^## /m).slice(1)) {
      const alert = alerts.find((each) => nameOfAlert(each) === nameOfAlert(section))!
      const severity = /severity: (\w+)/.exec(alert)![1]!
      assert.match(section, new RegExp(`^\\w+\n\n${severity}`, "i"), section.slice(0, 40))
      for (const part of ["Users notice", "Cause", "Look", "Cure"])
        assert.include(section, `- **${part}:**`, section.slice(0, 40))
    }
  })

  it("are named with metrics that there are in every document", () => {
    const documents = ["src/cli/README.md", "src/delivery/README.md", "src/settings/README.md"]
    const texts = [runbook, ...documents.map(textOf)]
    const others = Object.values(buckets).map(({ name }) => name as string)
    const named = texts
      .flatMap((text) => [...text.matchAll(/`(bellcast_[a-z]\w*)/g)].map(([, name]) => name!))
      .filter((name) => !others.includes(name))
    assert.isAbove(named.length, 10)
    const isThere = (name: string) =>
      metrics.has(name) ||
      (name.endsWith("_") && [...metrics.keys()].some((each) => each.startsWith(name)))
    assert.deepEqual(
      named.filter((name) => !isThere(name)),
      []
    )
  })
})
