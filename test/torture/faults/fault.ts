// The interface between the rig and its faults: what a fault is, and what the rig gives it. A fault
// draws all its choices from the seed when it is planned, and acts when its time comes. Each file
// of this folder exports its faults as an array, and all.ts joins them; nats-servers.ts also
// exports `startNatsServers(options: NatsServersOptions): Promise<NatsServers>`.
import type { Random } from "../random.ts"
import type { Store } from "./store.ts"
import type { TcpProxy } from "./tcp-proxy.ts"

export type Nodes = 1 | 3
export type Role = "gateway" | "projection" | "fanout" | "delivery" | "tally"

/**
 * What the nats-servers keep their files on. `plain`: a folder. `forgetful`: a file system that can
 * forget what was not synced. `small`: a tmpfs that can be filled. All servers of a cycle use the
 * same kind.
 */
export type StoreKind = "plain" | "forgetful" | "small"

/** A process of the service. Its name stays over restarts; its process id does not. */
export interface Member {
  readonly name: string
  readonly roles: ReadonlyArray<Role>
  /** Undefined while it does not run. */
  readonly pid: number | undefined
  /** SIGKILL; resolves when it is gone. The rig does not start it again by itself. */
  readonly kill: () => Promise<void>
  /** SIGTERM; resolves when it has ended, or after 30 s and SIGKILL. */
  readonly stop: () => Promise<void>
  /**
   * Starts it, if it does not run, with these further settings until its next start. Resolves when
   * the process exists: it may not be ready, because NATS may be away.
   */
  readonly start: (env?: Readonly<Record<string, string>>) => Promise<void>
  /** SIGSTOP and SIGCONT. */
  readonly freeze: () => void
  readonly thaw: () => void
}

export interface NatsServer {
  readonly name: string
  readonly pid: number | undefined
  /** Where it keeps streams now. Changes with `useStore` and with a crash image. */
  readonly storeFolder: string
  /** `http://127.0.0.1:PORT` of its monitoring. */
  readonly monitorUrl: string
  readonly kill: () => Promise<void>
  /** SIGTERM, as an operator stops it. */
  readonly stop: () => Promise<void>
  readonly start: () => Promise<void>
  readonly freeze: () => void
  readonly thaw: () => void
}

/** The nats-servers of a run: one, or a cluster of three. They sync always. */
export interface NatsServers extends AsyncDisposable {
  readonly nodes: Nodes
  readonly servers: ReadonlyArray<NatsServer>
  /**
   * Straight to the servers, for the rig's own clients. Comma-separated, the same over restarts.
   */
  readonly directUrl: string
  /**
   * For one process of the service: through TCP proxies of its own, one before each server, so that
   * its connections can be cut and frozen. Comma-separated; the same for the same name. The servers
   * do not advertise addresses that lead around the proxies.
   */
  readonly urlFor: (member: string) => Promise<string>
  /** The proxies before the servers that this process of the service uses: one for each server. */
  readonly linksOf: (member: string) => Promise<ReadonlyArray<TcpProxy>>
  /** Between two servers of a cluster: where the first dials the other, and the other the first. */
  readonly linksBetween: (one: string, other: string) => readonly [TcpProxy, TcpProxy]
  readonly storeOf: (server: string) => Store
  /** For the next start of this server, which must not run. Removes its former store. */
  readonly replaceStore: (server: string, store: Store) => Promise<void>
  /** A path for a new store of this server; nothing is there yet. */
  readonly newStoreFolder: (server: string) => string
  /** Stops all servers, moves their files to this kind of storage, and starts them. */
  readonly useStore: (kind: StoreKind) => Promise<void>
  /** Every server runs, every stream and consumer has a leader, and no replica is behind. */
  readonly isHealthy: () => Promise<boolean>
  /** What the servers have logged, by name: evidence of a failed run. */
  readonly logFiles: Readonly<Record<string, string>>
}

export interface NatsServersOptions {
  readonly nodes: Nodes
  /** An empty folder for stores, configurations and logs. The rig removes it. */
  readonly folder: string
}

export interface Context {
  readonly nodes: Nodes
  readonly nats: NatsServers
  readonly fleet: ReadonlyArray<Member>
  /** For files of faults. The rig removes it. */
  readonly folder: string
  /** A line in the printed schedule, such as which server the leader was. No secrets. */
  readonly say: (text: string) => void
}

/**
 * Processes that deliver whose unrecorded pushes may be sent again because of this fault: each adds
 * 768 to the duplicates that the cycle may have. `all`: NATS was away or unreachable, so every
 * process that delivers may repeat that many. A name may be there more than once.
 */
export type MayRepeat = ReadonlyArray<string> | "all"

export interface Ongoing {
  readonly mayRepeat: MayRepeat
  /** Undoes the fault: what it stopped runs again, without being ready yet. Must not reject. */
  readonly end: () => Promise<void>
}

export interface Planned {
  /** What is done to what, as the schedule prints it: drawn from the seed alone. */
  readonly text: string
  /**
   * What it needs for itself: no two faults run at once that share one. `nats` for what stops
   * servers or their disks, `links` for what cuts connections, a member's name for what stops that
   * member. Empty: beside anything.
   */
  readonly holds: ReadonlyArray<string>
  /** How long it lasts; 0: `end` follows at once. */
  readonly seconds: number
  readonly begin: (context: Context) => Promise<Ongoing>
}

/** What is known of a run when its faults are planned. */
export interface Shape {
  readonly nodes: Nodes
  /** Names and roles of the processes of the service. */
  readonly members: ReadonlyArray<Pick<Member, "name" | "roles">>
}

export interface Fault {
  /** A row of the table of what was tried: `nats-server frozen`. */
  readonly name: string
  /** Numbers of servers that it makes sense with. */
  readonly nodes: ReadonlyArray<Nodes>
  /** Planned only in cycles with this kind of storage; undefined: any. */
  readonly store?: StoreKind
  /** Also part of the short run in CI. */
  readonly short?: boolean
  /**
   * Why it cannot be had on this machine (no /dev/fuse, not root, no libfaketime); else undefined.
   */
  readonly unavailable?: () => Promise<string | undefined>
  /** `random` is its own; `secondsMax` is what is left of the cycle. */
  readonly plan: (random: Random, shape: Shape, secondsMax: number) => Planned
}
