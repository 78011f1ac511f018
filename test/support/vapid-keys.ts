// Helpers for tests of VAPID keys: the verb `keys`, its settings, subscriptions made with a certain
// key, and the full content of a NATS.

import { Effect } from "effect"
import { assert } from "vitest"
import { eachEntry } from "#nats/kv/entries.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { type BucketName, buckets } from "#streams/buckets.ts"
import { call } from "./client.ts"
import { runCli } from "./run-cli.ts"
import { startService } from "./service.ts"
import type { UserAgent } from "./user-agent.ts"

export type Env = Readonly<Record<string, string>>

export const keys = (env: Env, ...args: ReadonlyArray<string>) => runCli(["keys", ...args], env)

/** The settings that a verb printed, over those there were. */
export const withLines = (env: Env, lines: string): Env => ({
  ...env,
  ...Object.fromEntries(
    lines
      .split("\n")
      .flatMap((line) =>
        /^BELLCAST_\w+=/.test(line) ? [line.split("=", 2) as [string, string]] : []
      )
  )
})

export const rotate = async (env: Env): Promise<Env> => {
  const { code, stderr, stdout } = await keys(env, "rotate")
  assert.equal(code, 0, stderr)
  return withLines(env, stdout)
}

export const listed = async (
  env: Env
): Promise<
  ReadonlyArray<{ publicKey: string; state: string; created?: string; subscriptions: number }>
> => {
  const { code, stderr, stdout } = await keys(env, "list", "--json")
  assert.equal(code, 0, stderr)
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
}

export const enter = async (
  base: string,
  user: string,
  { subscription }: UserAgent,
  extra: Env = {}
) => {
  assert.equal(
    (await call(base, "POST", "/subscriptions", user, { data: { ...subscription, ...extra } }))
      .status,
    201
  )
  assert.equal((await call(base, "PUT", "/channels/news/registration", user)).status, 202)
}

export const refusedStart = async (
  options: Parameters<typeof startService>[0]
): Promise<string> => {
  const error = await startService(options).then(
    async (service) => {
      await service.kill()
      throw new Error(`it started: ${service.output()}`)
    },
    (failure: Error) => failure
  )
  return JSON.parse(error.message.split("\n").find((line) => line.includes('"level":60'))!).msg
}

/** Every message of both streams and every entry of the buckets, with what names them. */
export const everythingIn = (url: string) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const log = yield* EventLog
      const found: Array<string> = []
      for (const stream of ["log", "work"] as const) {
        yield* log.replay(stream, [">"], ({ subject, text }) =>
          Effect.sync(() => void found.push(subject, text))
        )
      }
      for (const bucket of Object.keys(buckets) as Array<BucketName>) {
        yield* eachEntry(bucket, (key, value) => void found.push(key, JSON.stringify(value)))
      }
      return found.join("\n")
    }).pipe(Effect.provide(natsLayer({ url, name: "test" })))
  )

/** How many pushes each has got. */
export const received = (agents: ReadonlyArray<UserAgent>) =>
  agents.map((agent) => agent.received.length)
