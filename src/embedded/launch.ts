// Starts nats-server with JetStream on a folder and waits until it takes connections. A shell
// process between Bellcast and nats-server supervises it: stops nats-server when Bellcast ends,
// even by kill -9, and keeps Ctrl-C away from it.
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { chmod, mkdir, rm } from "node:fs/promises"
import { createServer } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { replace } from "#secrets/whole-file.ts"
import {
  type Address,
  addressIn,
  authorizationOf,
  ensurePassword,
  type Folder,
  folderAt,
  logTail,
  released
} from "./folder.ts"
import { diskOf, goEnvironment, storageBytes } from "./limits.ts"

export interface LaunchOptions {
  readonly binary: string
  /** Contains every file of this server. */
  readonly folder: string
  /** Preferred port. If it is taken, or undefined: any free port. */
  readonly port?: number | undefined
  /**
   * "always" (default): on disk before the acknowledgement. Other values are faster and less safe.
   */
  readonly syncInterval?: string | undefined
  /** Whether clients must log in with the password in the folder. */
  readonly login?: boolean | undefined
  /** Called before a wait for a server whose service may be being stopped. Unset: no wait. */
  readonly waits?: (() => void) | undefined
  /** Called every 10 s while nats-server recovers its streams. */
  readonly recovers?: ((seconds: number) => void) | undefined
}

interface RunningServer extends Address {
  /** Resolves with the exit code when the server ends, for any reason. */
  readonly exited: Promise<number>
  readonly stop: () => Promise<void>
}

/** nats-server listens once JetStream has recovered: minutes, with a large store after a crash. */
export const readiness = { millisMax: 300_000, sayMillis: 10_000 }

/** Time for the supervisor to notice that its parent was killed. */
const noticeMillis = 500

/** Longer than the 5 s after which the supervisor kills a server that does not stop. */
const releaseTimeoutMillis = 7_000

/**
 * Time for a service that may be being stopped: it serves on for 5 s by default, so that load
 * balancers learn. A drain may take up to 20 s more: then the start is refused.
 */
export const stopTimeoutMillis = 10_000

/** nats-server's value for any free port. */
const anyPort = -1

/** In the last line of nats-server's log when it could not listen. */
const portTaken = "address already in use"

/** Starts the server. Rejects with what nats-server printed, or with who holds the folder. */
export const launch = async (options: LaunchOptions): Promise<RunningServer> => {
  const {
    binary,
    login = false,
    port = anyPort,
    recovers,
    syncInterval = "always",
    waits
  } = options
  const folder = folderAt(options.folder)
  await mkdir(folder.root, { recursive: true })
  // The folder holds the password, and the data of subscribers and publishers.
  await chmod(folder.root, 0o700)
  await demandFree(folder, waits)
  // A killed server leaves its ports file behind.
  await rm(folder.ports, { recursive: true, force: true })
  await mkdir(folder.ports, { recursive: true })
  const password = login ? await ensurePassword(folder.password) : undefined
  const free = port === anyPort || (await isFree(port)) ? port : anyPort
  const storage = storageBytes(await diskOf(folder.store, folder.root))
  const start = async (at: number) => {
    await replace(folder.config, configOf(folder, at, syncInterval, password, storage))
    const supervisor = supervise(binary, folder)
    return { supervisor, address: await ready(supervisor, folder, recovers) }
  }
  const { address, supervisor } = await start(free).catch(async (error: unknown) => {
    // Another process may take the port after the check that it is free.
    if (free === anyPort || !(await logTail(folder, 1)).includes(portTaken)) throw error
    return start(anyPort)
  })
  await replace(folder.url, address.url)
  return { ...address, exited: supervisor.exited, stop: supervisor.stop }
}

/**
 * Rejects when another server keeps this folder. Waits for a server whose parent was killed, and
 * with `waits` for one without the address of an API: its service is being stopped, is starting, or
 * has no gateway.
 */
const demandFree = async (folder: Folder, waits: LaunchOptions["waits"]): Promise<void> => {
  if (await released(folder, noticeMillis)) return
  const isUp = (await addressIn(folder)) !== undefined
  if (!isUp && (await released(folder, releaseTimeoutMillis))) return
  if (!isUp || waits === undefined || existsSync(folder.api)) throw await inUse(folder)
  waits()
  if (await released(folder, stopTimeoutMillis)) return
  throw await inUse(folder, " If its service is being stopped, start again when it has.")
}

const inUse = async (folder: Folder, more = "") => {
  const share =
    (await addressIn(folder)) === undefined
      ? ""
      : " For a second process of the same service, set what `bellcast keys show` prints (the " +
        "address of that server and the secrets) and another BELLCAST_PORT. For a service of its " +
        "own, set another BELLCAST_DATA_DIR and BELLCAST_PORT."
  return new Error(`${folder.root} is in use by another embedded nats-server.${share}${more}`)
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false))
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })

const configOf = (
  folder: Folder,
  port: number,
  syncInterval: string,
  password: string | undefined,
  storage: number
) => `
listen: "127.0.0.1:${port}"
${authorizationOf(password)}
server_name: "bellcast-embedded"
ports_file_dir: ${JSON.stringify(folder.ports)}
log_file: ${JSON.stringify(folder.log)}
logfile_size_limit: 10MB
logfile_max_num: 2
jetstream {
  store_dir: ${JSON.stringify(folder.store)}
  sync_interval: ${syncInterval}
  max_file_store: ${storage}
}
`

/** Waits until the server takes connections. `recovers` is called with the seconds so far. */
export const ready = async (
  supervisor: Supervisor,
  folder: Folder,
  recovers: LaunchOptions["recovers"],
  { millisMax, sayMillis } = readiness
): Promise<Address> => {
  const began = performance.now()
  let said = 0
  let ended: number | undefined
  void supervisor.exited.then((code) => {
    ended = code
  })
  while (ended === undefined && performance.now() - began < millisMax) {
    const address = await addressIn(folder)
    if (address !== undefined) return address
    if (performance.now() - began >= (said + 1) * sayMillis) {
      said += 1
      recovers?.((said * sayMillis) / 1_000)
    }
    // A start takes tens of milliseconds, a recovery minutes.
    await sleep(said === 0 ? 5 : 100)
  }
  if (ended === lockTaken) throw await inUse(folder)
  await supervisor.stop()
  const what =
    ended === undefined
      ? `was not ready within ${millisMax / 1000} s`
      : `ended with code ${ended} at start`
  throw new Error(
    [`nats-server ${what}.`, supervisor.printed().trim(), await logTail(folder, 5)]
      .filter((text) => text !== "")
      .join("\n")
  )
}

/** Exit code when another process has the lock: EX_TEMPFAIL of sysexits. */
const lockTaken = 75

/**
 * When Bellcast dies, its end of the script's standard input closes. `cat` then ends and
 * nats-server gets TERM, and KILL after 5 s. The address is removed first: a lock without an
 * address means "soon free". When nats-server ends, the lock is removed and its exit code passed
 * on. `set -C` (noclobber) makes taking the lock atomic.
 */
const script = `
lock=$1 ports=$2 url=$3; shift 3
(set -C; echo $$ > "$lock") 2>/dev/null || exit ${lockTaken}
exec 3<&0
"$@" 3<&- </dev/null &
server=$!
(
  cat <&3
  rm -f "$ports"/* "$url"
  kill -TERM $server
  sleep 5
  kill -KILL $server
) >/dev/null 2>&1 &
watch=$!
exec 3<&-
wait $server; code=$?
kill $watch 2>/dev/null
rm -f "$url" "$lock"
exit $code
`

interface Supervisor {
  /** Resolves when nats-server has ended, with its exit code. */
  readonly exited: Promise<number>
  /** The output of nats-server outside its log: errors in the configuration. */
  readonly printed: () => string
  readonly stop: () => Promise<void>
}

/** Starts nats-server under the supervisor. */
const supervise = (binary: string, folder: Folder): Supervisor => {
  const args = [
    "-c",
    script,
    "bellcast-nats",
    folder.lock,
    folder.ports,
    folder.url,
    binary,
    "-c",
    folder.config
  ]
  // Detached: a session of its own, so that neither Ctrl-C nor a closed terminal ends nats-server
  // before Bellcast has drained.
  const child = spawn("/bin/sh", args, {
    detached: true,
    stdio: ["pipe", "ignore", "pipe"],
    env: goEnvironment(process.env)
  })
  let printed = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    printed = (printed + text).slice(-2_000)
  })
  // The child may end before its input is closed.
  child.stdin.on("error", () => undefined)
  // `once` of Node.js would reject where the system refuses a process, and nobody would handle it.
  const exited = new Promise<number>((resolve) => {
    child.once("exit", (code) => resolve(code ?? 128))
    child.once("error", ({ message }) => {
      printed += message
      resolve(127)
    })
  })
  return {
    exited,
    printed: () => printed,
    stop: async () => {
      child.stdin.end()
      await exited
    }
  }
}
