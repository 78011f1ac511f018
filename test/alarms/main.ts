// `make test-alarms`: makes each alert of src/telemetry/alerts.yml fire by its cause, on a real
// cluster of three with a real Prometheus, and go silent again. Prints a table. ARGS: only the
// incidents whose name or alert contains one of these texts, with commas between.
import { spawnSync } from "node:child_process"
import { say } from "../bench/print.ts"
import { until } from "../support/client.ts"
import { textOf } from "../support/documents.ts"
import { type Incident, rounds } from "./incidents.ts"
import type { Alert } from "./prometheus.ts"
import { failingChecks, type Rig, startRig, untilQuiet } from "./rig.ts"

const firesMillis = 180_000
const silentMillis = 300_000
const lookMillis = 1_000
const dashboardMillis = 120_000

const isOf = ({ alert, labels = {} }: Incident, { labels: found }: Alert): boolean =>
  found.alertname === alert &&
  Object.entries(labels).every(([label, value]) => found[label] === value)

const minutes = (millis: number): string => (millis / 60_000).toFixed(1)

/** Messages of warnings and errors that were written since, each with its last reason. */
const wordsSince = (rig: Rig, lengths: ReadonlyMap<string, number>): string => {
  const words = new Map<string, string>()
  for (const member of Object.values(rig.members)) {
    const text = member.output().slice(lengths.get(member.name) ?? 0)
    for (const line of text.split("\n")) {
      const [, message] = /"level":[4-6]0,.*"msg":"((?:[^"\\]|\\.)*)"/.exec(line) ?? []
      const [, reason] = /"reason":"((?:[^"\\]|\\.)*)"/.exec(line) ?? []
      if (message !== undefined)
        words.set(message, reason === undefined ? message : `${message}: ${reason}`)
    }
  }
  return [...words.values()]
    .map((each) => each.slice(0, 300))
    .slice(-5)
    .join(" / ")
}

interface Row {
  readonly incident: Incident
  readonly fired: string
  readonly silent: string
  readonly summary: string
  readonly heartbeat: string
  readonly log: string
  readonly faults: ReadonlyArray<string>
}

/** Waits until the alert fires, or no longer does. Returns how long that took; undefined: no. */
const wait = async (
  rig: Rig,
  incident: Incident,
  isFiring: boolean,
  limit: number,
  seen: Map<string, Alert> = new Map()
): Promise<number | undefined> => {
  const began = performance.now()
  while (performance.now() - began < limit) {
    const alerts = await rig.prometheus.firing()
    for (const each of alerts) {
      seen.delete(JSON.stringify(each.labels))
      seen.set(JSON.stringify(each.labels), each)
    }
    if (alerts.some((each) => isOf(incident, each)) === isFiring) return performance.now() - began
    await new Promise((resolve) => setTimeout(resolve, lookMillis))
  }
  return undefined
}

/** Makes one incident happen and end. `isAlone`: nothing else happens, so nothing else may ring. */
const play = async (rig: Rig, incident: Incident, isAlone: boolean): Promise<Row> => {
  const faults: Array<string> = []
  const lengths = new Map(
    Object.values(rig.members).map((each) => [each.name, each.output().length])
  )
  say(`${incident.name} ...`)
  const end = await incident.cause(rig).catch((error: unknown) => {
    faults.push(`could not be made to happen: ${String(error)}`)
    return async () => undefined
  })
  const seen = new Map<string, Alert>()
  const fired = await wait(rig, incident, true, firesMillis, seen)
  if (fired === undefined) faults.push(`${incident.alert} did not fire within three minutes`)
  const heartbeat = (await failingChecks(rig)).join(", ")
  const log = wordsSince(rig, lengths)
  if (fired !== undefined && incident.heldMillis !== undefined) {
    const stopped = await wait(rig, incident, false, incident.heldMillis, seen)
    if (stopped !== undefined) faults.push(`silent after ${minutes(stopped)} min, while it lasts`)
  }
  await end()
  const silent = await wait(rig, incident, false, silentMillis, seen)
  if (silent === undefined) faults.push(`${incident.alert} rang for more than five minutes`)
  const others = [...seen.values()].filter(
    (each) =>
      each.labels.alertname !== incident.alert &&
      !(incident.beside ?? []).includes(each.labels.alertname)
  )
  if (isAlone && others.length > 0)
    faults.push(`rang too: ${others.map(({ labels }) => labels.alertname).join(", ")}`)
  const own = [...seen.values()].findLast((each) => isOf(incident, each))
  const words = own?.annotations["summary"]?.trim() ?? ""
  if (fired !== undefined && incident.says?.test(words) === false)
    faults.push(`does not name the cause: ${words}`)
  return {
    incident,
    fired: fired === undefined ? "never" : minutes(fired),
    silent: silent === undefined ? "never" : minutes(silent),
    summary: words,
    heartbeat: heartbeat === "" ? "well" : heartbeat,
    log,
    faults
  }
}

const print = (rows: ReadonlyArray<Row>) => {
  say("| Incident | Alert | Fires after | Silent after | Words of the alert | Heartbeat | Log |")
  say("| --- | --- | --- | --- | --- | --- | --- |")
  for (const { fired, heartbeat, incident, log, silent, summary } of rows)
    say(
      `| ${incident.name} | ${incident.alert} | ${fired} min | ${silent} min | ` +
        `${summary} | ${heartbeat} | ${log.replaceAll("|", "\\|")} |`
    )
}

/** Each query of the dashboard must be understood, and find something. */
const checkDashboard = async ({ prometheus }: Rig): Promise<ReadonlyArray<string>> => {
  const dashboard = textOf("src/telemetry/dashboard.json")
  const queries = [...dashboard.matchAll(/"expr": ("(?:[^"\\]|\\.)*")/g)].map(
    ([, text]) => JSON.parse(text!) as string
  )
  const faults: Array<string> = []
  for (const each of queries) {
    // A rate needs two scrapes of a process that has just started.
    const found = await until(
      () => prometheus.query(each).catch((error: Error) => error.message),
      (count) => count !== 0,
      dashboardMillis
    ).catch(() => 0)
    if (found === 0) faults.push(`the dashboard's query finds nothing: ${each}`)
    if (typeof found === "string") faults.push(`the dashboard's query ${each}: ${found}`)
  }
  say(`dashboard: ${queries.length} queries`)
  return faults
}

if (spawnSync("prometheus", ["--version"]).error !== undefined) {
  say("Prometheus is not installed: apt-get install prometheus (the tests stop its service)")
  process.exit(1)
}
const wanted = process.argv[2]
const isWanted = ({ alert, name }: Incident) =>
  wanted === undefined ||
  wanted.split(",").some((each) => name.includes(each) || alert.includes(each))
const rig = await startRig()
if (rig === undefined) {
  say("Small disks cannot be mounted here: make test-alarms needs root on Linux")
  process.exit(1)
}
say("the service runs")
const rows: Array<Row> = []
const faults: Array<string> = []
try {
  for (const round of rounds.map((each) => each.filter(isWanted))) {
    if (round.length === 0) continue
    await untilQuiet(rig, silentMillis)
    rows.push(...(await Promise.all(round.map((each) => play(rig, each, round.length === 1)))))
    for (const row of rows.slice(-round.length)) say(JSON.stringify(row))
  }
  if (wanted === undefined) {
    const rung = new Set(rows.map(({ incident }) => incident.alert))
    const all = [...textOf("src/telemetry/alerts.yml").matchAll(/- alert: (\w+)/g)]
    for (const [, name] of all) if (!rung.has(name!)) faults.push(`nothing makes ${name} fire`)
  }
  if (wanted === undefined || wanted === "dashboard") faults.push(...(await checkDashboard(rig)))
} finally {
  await rig[Symbol.asyncDispose]()
}
print(rows)
faults.push(...rows.flatMap((row) => row.faults.map((each) => `${row.incident.name}: ${each}`)))
for (const each of faults) say(`FAULT ${each}`)
process.exit(faults.length === 0 ? 0 : 1)
