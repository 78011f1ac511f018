// What Bellcast is measured beside, each in a process of its own against the same sink.
import { execFileSync, fork, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { certificatePath, trustingEnvironment } from "../support/tls.ts"
import type { SubscriptionJson } from "../support/user-agent.ts"

export interface Figures {
  readonly seconds: number
  readonly cpuSeconds: number
}

export interface Order {
  readonly subscriptions: ReadonlyArray<SubscriptionJson>
  readonly vapid: { readonly publicKey: string; readonly privateKey: string }
  readonly payload: string
}

const here = (file: string) => fileURLToPath(new URL(file, import.meta.url))

/** Runs loop.ts or ceiling.ts. */
export const runNode = (file: string, order: Order): Promise<Figures> =>
  new Promise((resolve, reject) => {
    const child = fork(here(file), {
      env: { ...process.env, ...trustingEnvironment },
      execArgv: []
    })
    child.once("message", (figures) => resolve(figures as Figures))
    child.once("exit", (code) => code !== 0 && reject(new Error(`${file} ended with ${code}`)))
    child.send(order)
  })

/** webpush-go, built now; undefined where there is no Go, or its modules cannot be had. */
export const buildWebpushGo = () => {
  const folder = mkdtempSync(join(tmpdir(), "bellcast-webpush-go-"))
  const binary = join(folder, "bench")
  try {
    execFileSync("go", ["build", "-o", binary, "."], {
      cwd: here("webpush-go"),
      stdio: "ignore",
      timeout: 300_000
    })
  } catch {
    rmSync(folder, { recursive: true, force: true })
    return undefined
  }
  const run = async (order: Order): Promise<Figures> => {
    const child = spawn(binary, {
      env: { ...process.env, SSL_CERT_FILE: certificatePath },
      stdio: ["pipe", "pipe", "inherit"]
    })
    child.stdin.end(JSON.stringify(order))
    const [figures, [code]] = await Promise.all([text(child.stdout), once(child, "close")])
    if (code !== 0) throw new Error(`webpush-go ended with ${code}`)
    return JSON.parse(figures)
  }
  return { run, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
}
