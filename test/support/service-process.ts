// A process of the service: its settings in tests, its log and its URL.
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { devNull } from "node:os"
import webpush from "web-push"

/** Flags of Node.js that every start of the documents gives (`test/unit/node-flags.test.ts`). */
export const nodeFlags = ["--heap-growing-percent=50"]

/** Secrets shared by all processes of one test. */
export const vapid = webpush.generateVAPIDKeys()
export const secretEnvironment = {
  BELLCAST_USERID_HMAC_SECRET: "a secret for tests, of thirty-two bytes",
  BELLCAST_VAPID_PUBLIC_KEY: vapid.publicKey,
  BELLCAST_VAPID_PRIVATE_KEY: vapid.privateKey,
  BELLCAST_VAPID_SUBJECT: "mailto:tests@example.com"
} as const

/** A settings file is read from a folder that a test made, never from a developer's own. */
export const settingsFile = (cwd: string | undefined) => ({
  BELLCAST_CONFIG: cwd === undefined ? devNull : ""
})

export interface Service extends AsyncDisposable {
  /** `http://127.0.0.1:PORT/v1` */
  readonly url: string
  readonly port: number
  /** `http://127.0.0.1:PORT` of the metrics port; throws while the port is off. */
  readonly metricsUrl: () => string
  readonly process: ChildProcess
  /** All that it has printed. */
  readonly output: () => string
  /** SIGKILL; resolves when it is gone. */
  readonly kill: () => Promise<void>
  /** SIGTERM; resolves with the exit code. */
  readonly stop: () => Promise<number | null>
}

export interface ProcessOptions {
  readonly natsUrl?: string
  readonly roles?: string
  /** Unset: any free port, as `BELLCAST_PORT=0`. */
  readonly port?: number
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly args?: ReadonlyArray<string>
  /** Drops the output after "ready": benches print a line for each of many requests. */
  readonly forgets?: boolean
  readonly readyTimeoutMillis?: number
  /** Is given the output, also before the process is ready. */
  readonly printed?: (text: string) => void
  /** Is given the process before it is ready. */
  readonly spawned?: (child: ChildProcess) => void
}

/** Services that still run. A test that timed out does not end its services. */
const running = new Set<ChildProcess>()

// vitest ends a worker by SIGTERM.
process.once("SIGTERM", () => {
  for (const child of running) child.kill("SIGKILL")
  process.exit()
})

/**
 * Runs the file `main`. Resolves once the process is ready; rejects with its output when it ends or
 * takes too long.
 */
export const startProcess = async (main: string, options: ProcessOptions): Promise<Service> => {
  const env = {
    ...process.env,
    ...settingsFile(options.cwd),
    BELLCAST_PORT: String(options.port ?? 0),
    BELLCAST_METRICS_ADDRESS: "127.0.0.1:0",
    BELLCAST_AUTH_POLICIES: "basicauth",
    BELLCAST_ALLOW_LOOPBACK_ENDPOINTS: "true",
    BELLCAST_CHANNEL_WRITE_PRINCIPALS: "system.Authenticated",
    BELLCAST_RETRY_BASE_MILLIS: "200",
    BELLCAST_PUBLIC_METRICS: "true",
    BELLCAST_SHUTDOWN_WAIT_SECONDS: "0",
    // Whether others begin depends on how busy the machine is.
    BELLCAST_DELIVERY_PROCESSES: "1",
    // Tests have one push service, and hundreds of users who come from one address.
    BELLCAST_SUBSCRIPTIONS_PER_USER_PER_HOST_MAX: "50",
    BELLCAST_NEW_USERS_PER_ADDRESS_PER_HOUR_MAX: "0",
    BELLCAST_REQUESTS_PER_ADDRESS_PER_MINUTE_MAX: "0",
    BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX: "0",
    BELLCAST_REQUESTS_PER_USER_PER_MINUTE_MAX: "0",
    BELLCAST_CHANGES_PER_ADDRESS_PER_HOUR_MAX: "0",
    BELLCAST_CHANGES_PER_USER_PER_HOUR_MAX: "0",
    BELLCAST_NEW_CHANNELS_PER_HOUR_MAX: "0",
    BELLCAST_BROADCAST_BYTES_PER_PUBLISHER_PER_HOUR_MAX: "0",
    ...(options.natsUrl === undefined
      ? {}
      : { ...secretEnvironment, BELLCAST_NATS_URL: options.natsUrl }),
    ...(options.roles === undefined ? {} : { BELLCAST_ROLES: options.roles }),
    ...options.env
  }
  const child = spawn(process.execPath, [...nodeFlags, main, ...(options.args ?? [])], {
    env,
    cwd: options.cwd,
    stdio: ["ignore", "pipe", "pipe"]
  })
  options.spawned?.(child)
  let output = ""
  let stderr = ""
  let isReady = false
  running.add(child)
  child.once("exit", () => running.delete(child))
  const exited = once(child, "close")
  const ready = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`not ready in time:\n${output}`)),
      options.readyTimeoutMillis ?? 30_000
    )
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        options.printed?.(text)
        if (isReady && options.forgets === true) return
        output += text
        if (isReady || !/"msg":"ready"/.test(output)) return
        isReady = true
        clearTimeout(timer)
        resolve()
      })
    }
    void exited.then(([code]) =>
      reject(new Error(`ended with ${code} before it was ready:\n${output}`))
    )
  })
  child.stderr.on("data", (text: string) => {
    stderr += text
  })
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    const [code] = await exited
    if (stderr !== "") throw new Error(`the service wrote to stderr: ${stderr}`)
    return code as number | null
  }
  try {
    await ready
  } catch (error) {
    child.kill("SIGKILL")
    await exited
    throw error
  }
  const [, port = options.port] = /"api":"[^"]+:(\d+)",.*"msg":"ready"/.exec(output) ?? []
  return {
    url: `http://127.0.0.1:${port}/v1`,
    port: Number(port),
    metricsUrl: () => {
      const [, address] = /"metrics":"([^"]+)","msg":"ready"/.exec(output) ?? []
      if (address === undefined) throw new Error("the metrics port is off")
      return `http://${address}`
    },
    process: child,
    output: () => output,
    kill: async () => void (await end("SIGKILL")),
    stop: () => end("SIGTERM"),
    [Symbol.asyncDispose]: async () => void (await end("SIGKILL"))
  }
}
