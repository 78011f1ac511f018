// What the proofs of the fault tools share: servers that are removed at the end, a client, a wait.
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { connect, type NatsConnection } from "@nats-io/transport-node"
import { onTestFinished } from "vitest"
import type { NatsServers } from "./fault.ts"
import { type StartOptions, startNatsServers } from "./nats-servers.ts"

export const emptyFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "torture-"))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

export const servers = async (options: Omit<StartOptions, "folder">): Promise<NatsServers> => {
  const folder = await emptyFolder()
  const nats = await startNatsServers({ ...options, folder })
  onTestFinished(() => nats[Symbol.asyncDispose]())
  return nats
}

export const until = async (
  what: string,
  holds: () => Promise<boolean>,
  withinMillis = 30_000
): Promise<void> => {
  const deadline = Date.now() + withinMillis
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`not in ${withinMillis} ms: ${what}`)
    await sleep(100)
  }
}

export const client = async (urls: string): Promise<NatsConnection> => {
  const connection = await connect({
    servers: urls.split(","),
    maxReconnectAttempts: -1,
    ignoreClusterUpdates: true
  })
  onTestFinished(() => connection.close())
  return connection
}
