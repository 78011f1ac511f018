// A real Prometheus with the rules of src/telemetry/alerts.yml, and what it says of them.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { until } from "../support/client.ts"
import { claimPort } from "../support/ports.ts"

const rules = fileURLToPath(new URL("../../src/telemetry/alerts.yml", import.meta.url))

/** The interval that the rules assume. */
const config = (targets: string) => `
global: { scrape_interval: 15s, evaluation_interval: 15s }
rule_files: [${rules}]
scrape_configs:
  - job_name: bellcast
    file_sd_configs: [{ files: [${targets}], refresh_interval: 2s }]
`

export interface Alert {
  readonly labels: Readonly<Record<string, string>> & {
    readonly alertname: string
    readonly severity: string
  }
  readonly annotations: Readonly<Record<string, string>>
  readonly state: "pending" | "firing"
}

export interface Prometheus extends AsyncDisposable {
  /** The alerts that fire now. */
  readonly firing: () => Promise<ReadonlyArray<Alert>>
  /** How many series a query gives. Rejects with its error. */
  readonly query: (text: string) => Promise<number>
  /** Scrapes these addresses from now on, each with a label that says what it runs. */
  readonly scrape: (targets: ReadonlyMap<string, string>) => Promise<void>
}

export const startPrometheus = async (): Promise<Prometheus> => {
  const folder = await mkdtemp(join(tmpdir(), "bellcast-prometheus-"))
  const targets = join(folder, "targets.json")
  await writeFile(targets, "[]")
  await writeFile(join(folder, "prometheus.yml"), config(targets))
  const port = await claimPort()
  const child = spawn(
    "prometheus",
    [
      `--config.file=${folder}/prometheus.yml`,
      `--storage.tsdb.path=${folder}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--log.level=error"
    ],
    { stdio: ["ignore", "ignore", "inherit"] }
  )
  const exited = once(child, "exit")
  const read = async <A>(path: string): Promise<A> => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`)
    const { data, error } = (await response.json()) as { data: A; error?: string }
    if (error !== undefined) throw new Error(error)
    return data
  }
  await until(
    () =>
      fetch(`http://127.0.0.1:${port}/-/ready`).then(
        ({ ok }) => ok,
        () => false
      ),
    Boolean
  )
  return {
    firing: async () => {
      const { alerts } = await read<{ alerts: ReadonlyArray<Alert> }>("alerts")
      return alerts.filter(({ state }) => state === "firing")
    },
    query: async (text) => {
      const { result } = await read<{ result: ReadonlyArray<unknown> }>(
        `query?query=${encodeURIComponent(text)}`
      )
      return result.length
    },
    scrape: async (addresses) => {
      const groups = [...addresses].map(([address, roles]) => ({
        targets: [address],
        labels: { roles }
      }))
      await writeFile(`${targets}.new`, JSON.stringify(groups))
      await rename(`${targets}.new`, targets)
    },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL")
      await exited
      await rm(folder, { recursive: true, force: true })
    }
  }
}
