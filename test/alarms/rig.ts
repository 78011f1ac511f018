// A service as operators run it: three nats-servers with the accounts file, each on a small disk of
// its own, two gateways, the other roles in processes of their own, a Prometheus that scrapes all.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { accounts, passwords } from "../support/accounts.ts"
import { join, publish, until } from "../support/client.ts"
import { type Disk, smallDisk } from "../support/disk.ts"
import { makeNatsCluster } from "../support/nats-cluster.ts"
import { claimPort } from "../support/ports.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { type Service, type ServiceOptions, sources, startService } from "../support/service.ts"
import { type Prometheus, startPrometheus } from "./prometheus.ts"

/** A process of the service at a metrics port of its own, whenever it runs. */
export class Member {
  readonly name: string
  readonly address: string
  readonly #options: ServiceOptions
  #service: Service | undefined
  #before = ""

  constructor(name: string, address: string, options: ServiceOptions) {
    this.name = name
    this.address = address
    this.#options = options
  }

  get service(): Service {
    if (this.#service === undefined) throw new Error(`${this.name} does not run`)
    return this.#service
  }

  get pid(): number {
    return (this.service.process as unknown as { readonly pid: number }).pid
  }

  get runs(): boolean {
    return this.#service !== undefined
  }

  async start(): Promise<void> {
    this.#service ??= await startService(this.#options)
  }

  async kill(): Promise<void> {
    const service = this.#service
    this.#service = undefined
    this.#before += service?.output() ?? ""
    await service?.kill().catch(() => undefined)
  }

  /** All that it has logged, in earlier lives too. */
  output(): string {
    return this.#before + (this.#service?.output() ?? "")
  }
}

const roles = {
  "gateway-1": "gateway",
  "gateway-2": "gateway",
  planner: "fanout",
  projector: "projection",
  "worker-1": "delivery",
  "worker-2": "delivery",
  tally: "tally"
} as const

/**
 * The push services by their hosts, of which there are two labels: `localhost`, which the settings
 * name, and `other`. Two of one label would share an alert.
 */
export const hosts = {
  steady: "127.0.0.1",
  refusing: "127.0.0.1",
  refusingLong: "127.0.0.1",
  gone: "127.0.0.1",
  slow: "127.0.0.1",
  unreachable: "localhost",
  throttling: "localhost",
  dead: "localhost"
} as const

export const labelOf = (name: keyof typeof hosts): string =>
  hosts[name] === "localhost" ? "localhost" : "other"

const startCluster = async (disks: ReadonlyArray<Disk>) => {
  const { ports, start } = await makeNatsCluster({
    lines: accounts,
    advertises: false,
    env: passwords,
    folders: disks.map(({ folder }) => folder)
  })
  const servers: Array<AsyncDisposable | undefined> = []
  const begin = async (n: number) => {
    servers[n] ??= await start(n)
  }
  await Promise.all([0, 1, 2].map(begin))
  return {
    ports,
    begin,
    kill: async (n: number) => {
      const server = servers[n]
      servers[n] = undefined
      await server?.[Symbol.asyncDispose]()
    }
  }
}

const settings = (urls: string) => ({
  natsUrl: urls,
  readyTimeoutMillis: 120_000,
  program: sources
})

const env = {
  BELLCAST_NATS_INBOX_PREFIX: "_INBOX_bellcast",
  BELLCAST_REPLICAS: "3",
  BELLCAST_AUTH_POLICIES: "basicauth,token",
  BELLCAST_PUSH_HOSTS: "localhost",
  // A slow push service fills a worker with few shards.
  BELLCAST_SHARDS_IN_FLIGHT: "4",
  BELLCAST_SUBSCRIPTIONS_PER_USER_PER_HOST_MAX: "50"
}

export interface Rig extends AsyncDisposable {
  readonly urls: string
  readonly disks: ReadonlyArray<Disk>
  readonly nats: Awaited<ReturnType<typeof startCluster>>
  readonly members: Readonly<Record<keyof typeof roles, Member>>
  readonly prometheus: Prometheus
  /** A client that may do everything in the account of the service. */
  readonly admin: () => Promise<AsyncDisposable & { readonly jsm: Jsm; readonly nc: Nc }>
  /** Starts one more process, which Prometheus scrapes until it ends. */
  readonly add: (
    name: string,
    roles: string,
    env?: Readonly<Record<string, string>>,
    natsUrl?: string
  ) => Promise<AsyncDisposable & { readonly member: Member }>
  readonly push: Readonly<Record<keyof typeof hosts, PushService>>
  /** The base of a gateway that runs. */
  readonly url: () => string
}

type Nc = Awaited<ReturnType<typeof connect>>
type Jsm = Awaited<ReturnType<typeof jetstreamManager>>

const adminOf = async (ports: ReadonlyArray<number>) => {
  const nc = await connect({
    servers: ports.map((port) => `127.0.0.1:${port}`),
    user: "bellcast-admin",
    pass: "word"
  })
  const jsm = await jetstreamManager(nc, { timeout: 15_000 })
  return { nc, jsm, [Symbol.asyncDispose]: () => nc.close() }
}

const startPushServices = async () =>
  Object.fromEntries(
    await Promise.all(
      Object.entries(hosts).map(async ([name, host]) => [name, await startPushService({ host })])
    )
  ) as Rig["push"]

/** Subscribers of the channel `steady`. A cluster that has just started may refuse the first. */
const joinSteady = async ({ push, url }: Pick<Rig, "push" | "url">) => {
  const agents = Array.from({ length: 40 }, () => push.steady.subscribe().subscription)
  const joined = () =>
    join([url()], "steady", agents, 4, "steady").then(
      () => true,
      () => false
    )
  await until(joined, Boolean, 120_000)
}

/** A broadcast to them each few seconds, whatever happens. */
const steady = async ({ url }: Pick<Rig, "url">, signal: AbortSignal) => {
  while (!signal.aborted) {
    await Promise.resolve()
      .then(() => publish(url(), "steady", { n: 1 }))
      .catch(() => undefined)
    await pause(3_000, undefined, { signal }).catch(() => undefined)
  }
}

/** Undefined: this machine does not let us mount small disks. `more`: settings of all processes. */
export const startRig = async (
  more: Readonly<Record<string, string>> = {}
): Promise<Rig | undefined> => {
  const folders = [1, 2, 3].map(() => mkdtempSync(path.join(tmpdir(), "bellcast-alarms-")))
  const disks = await Promise.all(folders.map((each) => smallDisk(each)))
  if (disks.some((disk) => disk === undefined)) return undefined
  const all = disks as ReadonlyArray<Disk>
  const nats = await startCluster(all)
  const urls = nats.ports.map((port) => `nats://bellcast:word@127.0.0.1:${port}`).join(",")
  const prometheus = await startPrometheus()
  const targets = new Map<string, string>()
  const memberOf = async (
    name: string,
    which: string,
    own: Readonly<Record<string, string>> = {},
    natsUrl = urls
  ) => {
    const address = `127.0.0.1:${await claimPort()}`
    const options: ServiceOptions = {
      ...settings(natsUrl),
      roles: which,
      env: { ...env, ...more, BELLCAST_METRICS_ADDRESS: address, ...own }
    }
    const member = new Member(name, address, options)
    await member.start()
    targets.set(address, which)
    await prometheus.scrape(targets)
    return member
  }
  const members: Record<string, Member> = {}
  // The first makes the streams.
  for (const [name, which] of Object.entries(roles)) members[name] = await memberOf(name, which)
  const push = await startPushServices()
  const url = () => {
    const gateway = [members["gateway-1"]!, members["gateway-2"]!].find(({ runs }) => runs)
    if (gateway === undefined) throw new Error("no gateway runs")
    return gateway.service.url
  }
  const ending = new AbortController()
  await joinSteady({ push, url })
  const working = steady({ url }, ending.signal)
  return {
    urls,
    disks: all,
    nats,
    members: members as Rig["members"],
    prometheus,
    admin: () => adminOf(nats.ports),
    add: async (name, which, own, natsUrl) => {
      const member = await memberOf(name, which, own, natsUrl)
      return {
        member,
        [Symbol.asyncDispose]: async () => {
          targets.delete(member.address)
          await prometheus.scrape(targets)
          await member.kill()
        }
      }
    },
    push,
    url,
    [Symbol.asyncDispose]: async () => {
      ending.abort()
      await working.catch(() => undefined)
      for (const each of Object.values(members)) await each.kill()
      await prometheus[Symbol.asyncDispose]()
      for (const n of [0, 1, 2]) await nats.kill(n)
      for (const each of Object.values(push)) await each[Symbol.asyncDispose]()
      for (const each of all) await each[Symbol.asyncDispose]()
      for (const each of folders) rmSync(each, { recursive: true, force: true })
    }
  }
}

/** The heartbeat's checks that fail, as the metrics port of a process that runs says. */
export const failingChecks = async ({ members }: Rig): Promise<ReadonlyArray<string>> => {
  for (const member of Object.values(members)) {
    if (!member.runs) continue
    const response = await fetch(`http://${member.address}/__heartbeat__`).catch(() => undefined)
    if (response === undefined) continue
    const view = (await response.json()) as Record<string, boolean>
    return Object.entries(view).flatMap(([check, isWell]) => (isWell ? [] : check))
  }
  return ["no process answers"]
}

/** Waits until nothing fires. */
export const untilQuiet = ({ prometheus }: Rig, timeoutMillis: number) =>
  until(prometheus.firing, (alerts) => alerts.length === 0, timeoutMillis)
