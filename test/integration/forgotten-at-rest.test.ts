// An hour in which nobody does anything costs NATS the same, however many registrations and
// channels there are: nothing reads a bucket whole because time has passed.
import { jetstream } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { Clock, Effect, Fiber, Layer } from "effect"
import { afterAll, beforeAll, describe, it } from "vitest"
import { natsLayer } from "#nats/layer.ts"
import { EndedMillis } from "#projection/forget.ts"
import { projectionLayer } from "#projection/projector.ts"
import { UnusedMax } from "#projection/sets.ts"
import { tallyLayer } from "#tally/tally.ts"
import { until } from "../support/client.ts"
import { fastClock } from "../support/fast-clock.ts"
import { quiet } from "../support/history.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { elapsed } from "../support/quiet.ts"
import { allIsSaved } from "../support/registration-entries.ts"
import { startService } from "../support/service.ts"

/** At rest, in seconds of the test: with the fast clock as many hours. */
const hours = 3
const fewUsers = 100
const manyUsers = 1_000
/** Messages by which two rests may differ: those of a second. */
const noiseMax = 60

let nats: TestNats
let admin: NatsAdmin
let stop: () => Promise<unknown>

/** Projector and tally, for which an hour is a second. */
const startFollowers = () => {
  const fiber = Effect.runFork(
    Layer.launch(Layer.merge(projectionLayer, tallyLayer)).pipe(
      Effect.provide(natsLayer({ url: nats.url, name: "followers" })),
      Effect.provideService(EndedMillis, 500),
      Effect.provideService(UnusedMax, 20),
      Effect.provideService(Clock.Clock, fastClock()),
      Effect.provide(quiet)
    )
  )
  return () => Effect.runPromise(Fiber.interrupt(fiber))
}

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  // Makes the streams.
  await (await startService({ natsUrl: nats.url, roles: "gateway" })).stop()
  admin = await connectAdmin(nats.url)
  stop = startFollowers()
})
afterAll(async () => {
  await stop?.()
  await admin?.[Symbol.asyncDispose]()
  await nats?.[Symbol.asyncDispose]()
})

/** Users join or leave, ten a channel. */
const change = async (type: "put" | "delete", from: number, to: number) => {
  const typed = headers()
  typed.set("Bellcast-Type", `registration.${type}/1`)
  const js = jetstream(admin.nc)
  for (let n = from; n < to; n += 100)
    await Promise.all(
      Array.from({ length: 100 }, (_, i) => {
        const [user, channel] = [`u${n + i}`.padEnd(22, "_"), `c${Math.floor((n + i) / 10)}`]
        const body = JSON.stringify({ user, at: Date.now() })
        return js.publish(`bellcast.cmd.registration.${channel}.${user}`, body, { headers: typed })
      })
    )
  await allIsSaved(admin)
}

/** All messages of the account while something goes on: requests, responses and deliveries. */
const messagesOf = async (work: () => Promise<unknown>) => {
  let messages = 0
  const all = admin.nc.subscribe(">", { callback: () => void messages++ })
  await admin.nc.flush()
  await work()
  all.unsubscribe()
  return messages
}
const rest = () => elapsed(hours * 1_000)
/**
 * Waits for a rest that costs at most so much, and returns what it cost. What went before ends, and
 * a slow machine that loses a lease begins a term, which reads more. What time causes is in each.
 */
const restOf = (messagesMax: number) =>
  until(
    () => messagesOf(rest),
    (messages) => messages <= messagesMax
  )
const entries = async (bucket: string) => {
  const info = await admin.jsm.streams.info(`KV_bellcast_${bucket}`, { subjects_filter: ">" })
  return Object.keys(info.state.subjects ?? {}).filter((subject) => !subject.endsWith(".meta"))
}

describe("an hour at rest", { timeout: 120_000 }, () => {
  it("costs the same with ten times the registrations and channels", async () => {
    await change("put", 0, fewUsers)
    const few = await restOf(fewUsers + noiseMax)
    await change("put", fewUsers, manyUsers)
    await restOf(few + noiseMax)
  })

  it("costs the same where it begins a term: registrations are not read again", async () => {
    const begin = async () => {
      await stop()
      return messagesOf(async () => {
        stop = startFollowers()
        await rest()
      })
    }
    // The channels are read once: three messages for each of 100.
    await until(begin, (messages) => messages < manyUsers)
  })

  it("follows one in which everybody left more channels than are remembered", async () => {
    await change("delete", 0, manyUsers)
    for (const bucket of ["channels", "registrations"])
      await until(
        () => entries(bucket),
        (left) => left.every((subject) => subject.includes("=users.")),
        60_000
      )
    await restOf(fewUsers + noiseMax)
  })
})
