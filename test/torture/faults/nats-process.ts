// One nats-server process with a fixed name and fixed ports, on a store that may change between two
// starts.
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readFile, writeFile } from "node:fs/promises"
import { connect } from "node:net"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import type { NatsServer } from "./fault.ts"

export interface Ports {
  readonly client: number
  readonly cluster: number
  readonly monitor: number
}

export interface NatsProcessOptions {
  readonly name: string
  readonly binary: string
  /** An existing folder for the configuration and the log. */
  readonly folder: string
  readonly ports: Ports
  /** Ports of 127.0.0.1 that lead to the other servers of the cluster; none: a single server. */
  readonly routes: ReadonlyArray<number>
  /** `always`, or how long the server may wait until it syncs: `2m`. */
  readonly syncInterval: string
  readonly storeFolder: string
}

const readyTimeoutMillis = 30_000

/**
 * The servers learn each other's advertised address and dial it when a route is cut, which would
 * lead around the proxies. So they advertise a port where nothing listens.
 */
const cluster = ({ ports, routes }: NatsProcessOptions) =>
  routes.length === 0
    ? ""
    : `
cluster {
  name: "torture"
  listen: "127.0.0.1:${ports.cluster}"
  advertise: "127.0.0.1:1"
  no_advertise: true
  routes: [${routes.map((port) => `"nats-route://127.0.0.1:${port}"`).join(", ")}]
}`

/** `max_file_store` is above what any stream reserves: a small disk is found out by filling it. */
const configOf = (options: NatsProcessOptions, storeFolder: string) => `
server_name: "${options.name}"
listen: "127.0.0.1:${options.ports.client}"
http: "127.0.0.1:${options.ports.monitor}"
log_file: ${JSON.stringify(join(options.folder, `${options.name}.log`))}
jetstream {
  store_dir: ${JSON.stringify(storeFolder)}
  sync_interval: ${options.syncInterval}
  max_memory_store: 256MB
  max_file_store: 64GB
}${cluster(options)}
`

/** Servers must not outlive the process that started them, however that ends. */
const running = new Set<ChildProcess>()
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL")
})

const takesConnections = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    const settle = (result: boolean) => {
      socket.destroy()
      resolve(result)
    }
    socket.setTimeout(1_000, () => settle(false))
    // A server sends INFO first.
    socket.once("data", () => settle(true))
    socket.once("error", () => settle(false))
    socket.once("close", () => settle(false))
  })

export class NatsProcess implements NatsServer {
  readonly name: string
  readonly url: string
  readonly monitorUrl: string
  readonly logFile: string
  storeFolder: string
  readonly #options: NatsProcessOptions
  #child: ChildProcess | undefined

  constructor(options: NatsProcessOptions) {
    this.#options = options
    this.name = options.name
    this.storeFolder = options.storeFolder
    this.url = `nats://127.0.0.1:${options.ports.client}`
    this.monitorUrl = `http://127.0.0.1:${options.ports.monitor}`
    this.logFile = join(options.folder, `${options.name}.log`)
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Does nothing when it runs. Resolves when it takes connections: it may not be healthy yet. */
  async start(): Promise<void> {
    if (this.#child !== undefined) return
    const config = join(this.#options.folder, `${this.name}.conf`)
    await writeFile(config, configOf(this.#options, this.storeFolder))
    const child = spawn(this.#options.binary, ["-c", config], { stdio: "ignore" })
    this.#child = child
    running.add(child)
    child.once("exit", () => {
      running.delete(child)
      if (this.#child === child) this.#child = undefined
    })
    const deadline = Date.now() + readyTimeoutMillis
    while (!(await takesConnections(this.#options.ports.client))) {
      if (this.#child !== child) throw new Error(`${this.name} ended: ${await this.#logTail()}`)
      if (Date.now() > deadline)
        throw new Error(`${this.name} took no connection in 30 s: ${await this.#logTail()}`)
      await sleep(20)
    }
  }

  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void> {
    return this.#end("SIGKILL")
  }

  /** As an operator stops it; SIGKILL after 10 s. */
  stop(): Promise<void> {
    return this.#end("SIGTERM")
  }

  freeze(): void {
    this.#child?.kill("SIGSTOP")
  }

  thaw(): void {
    this.#child?.kill("SIGCONT")
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (child === undefined) return
    const exited = once(child, "exit")
    child.kill(signal)
    // A frozen process ends by SIGTERM only when it runs again.
    child.kill("SIGCONT")
    const timer = setTimeout(() => child.kill("SIGKILL"), 10_000)
    await exited
    clearTimeout(timer)
  }

  async #logTail(): Promise<string> {
    const log = await readFile(this.logFile, "utf8").catch(() => "")
    return log.split("\n").slice(-6).join("\n")
  }
}
