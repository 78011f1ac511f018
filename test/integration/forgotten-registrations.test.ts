// A registration that ended leaves no entry, and nothing brings it back: neither a killed
// nats-server nor a projector that died half-way. Its user may register again at any gateway.
import { jetstream } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { Effect, Fiber, Layer } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { natsLayer } from "#nats/layer.ts"
import { EndedMillis } from "#projection/forget.ts"
import { projectionLayer } from "#projection/projector.ts"
import { rebuild } from "#rebuild/rebuild.ts"
import { call, registrationsSeen, until } from "../support/client.ts"
import { quiet, rebuildAt } from "../support/history.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { allIsSaved, areOn, bucket, entryOf, removeEntry } from "../support/registration-entries.ts"
import { type Service, startService } from "../support/service.ts"

let nats: TestNats
let admin: NatsAdmin
let one: Service
let other: Service
let stopProjector: () => Promise<unknown>

/** The projector of a service, which forgets at once. */
const startProjector = (endedMillis = 0) => {
  const fiber = Effect.runFork(
    Layer.launch(projectionLayer).pipe(
      Effect.provide(natsLayer({ url: nats.url, name: "projector" })),
      Effect.provideService(EndedMillis, endedMillis),
      Effect.provide(quiet)
    )
  )
  return () => Effect.runPromise(Fiber.interrupt(fiber))
}

beforeAll(async () => {
  nats = await startNats()
  one = await startService({ natsUrl: nats.url, roles: "gateway" })
  other = await startService({ natsUrl: nats.url, roles: "gateway" })
  admin = await connectAdmin(nats.url)
  stopProjector = startProjector()
}, 60_000)
afterAll(async () => {
  await stopProjector?.()
  await admin?.[Symbol.asyncDispose]()
  for (const each of [one, other, nats]) await each?.[Symbol.asyncDispose]()
})

const change = (method: "PUT" | "DELETE", channel: string, user: string, by = one) =>
  call(by.url, method, `/channels/${channel}/registration`, user)
/** Also where it is 503 at first: after a restart of nats-server a projector may begin anew. */
const isDone = ({ status }: { readonly status: number }) => status === 202
const changed = (...what: Parameters<typeof change>) => until(() => change(...what), isDone)
const join = (channel: string, user: string, by = one) => changed("PUT", channel, user, by)
const leave = (channel: string, user: string, by = one) => changed("DELETE", channel, user, by)
const seen = (channel: string, user: string, by = other) => registrationsSeen(by.url, channel, user)

const entries = (channel: string) => areOn(admin, channel)
const nothingIsLeft = (channel: string) =>
  until(
    () => entries(channel),
    (left) => left.length === 0
  )
/** A gateway responds when everything before its command is applied, too. */
const allIsApplied = () => until(() => change("PUT", "awake", `${Math.random()}`), isDone)
const restartNats = async () => {
  await nats.kill()
  await nats.restart()
  await allIsApplied()
}
/** Ends a registration, and stops the projector after the first of its two writes. */
const dieBetweenWrites = async (channel: string, user: string) => {
  await allIsSaved(admin)
  await stopProjector()
  // Stored, but nobody applies it.
  assert.equal((await change("DELETE", channel, user)).status, 503)
  const { subject } = (await admin.jsm.streams.getMessage("BELLCAST_LOG", {
    last_by_subj: `bellcast.cmd.registration.${channel}.*`
  }))!
  await removeEntry(admin, channel, subject.split(".").at(-1)!)
}
const publish = (channel: string, user: string, type: string) => {
  const typed = headers()
  typed.set("Bellcast-Type", `registration.${type}/1`)
  const body = JSON.stringify({ user: "gus", at: Date.now() })
  return jetstream(admin.nc).publish(`bellcast.cmd.registration.${channel}.${user}`, body, {
    headers: typed
  })
}

describe("a registration that ended", { timeout: 120_000 }, () => {
  it("leaves no entry, and its user registers again at any gateway", async () => {
    for (let round = 0; round < 3; round++) {
      await join("news", "ann", round % 2 === 0 ? one : other)
      await join("news", "bob")
      assert.equal(await seen("news", "ann"), 2)
      await leave("news", "ann", other)
      assert.equal(await seen("news", "bob"), 1)
      assert.isUndefined(await seen("news", "ann"))
      await leave("news", "bob", one)
      await nothingIsLeft("news")
    }
  })

  it("is what a rebuild makes of it, and its user registers again after that", async () => {
    await join("kept", "ann")
    await join("kept", "dan")
    await leave("kept", "dan")
    await until(
      () => entries("kept"),
      (left) => left.length === 1
    )
    await stopProjector()
    await Effect.runPromise(
      rebuild().pipe(
        Effect.provideService(EndedMillis, 0),
        Effect.provide(Layer.merge(natsLayer({ url: nats.url, name: "rebuild" }), quiet))
      )
    )
    assert.deepEqual(await entries("kept"), [true])
    stopProjector = startProjector()
    await join("kept", "dan", other)
    assert.equal(await seen("kept", "dan", one), 2)
    for (const user of ["ann", "dan"]) await leave("kept", user)
    await nothingIsLeft("kept")
  })

  it("does not come back when nats-server is killed, forgotten or not yet", async () => {
    for (const user of ["eve", "fay"]) await join("back", user)
    await leave("back", "eve")
    await until(
      () => entries("back"),
      (left) => left.length === 1
    )
    await stopProjector()
    stopProjector = startProjector(60_000)
    await leave("back", "fay")
    assert.deepEqual(await entries("back"), [false])
    await restartNats()
    assert.deepEqual(await entries("back"), [false])
    assert.isUndefined(await seen("back", "eve"))
    assert.isUndefined(await seen("back", "fay"))
    await stopProjector()
    stopProjector = startProjector()
    await nothingIsLeft("back")
    await restartNats()
    assert.deepEqual(await entries("back"), [])
  })

  it("does not come back either where its user had registered twice", async () => {
    const user = "g".repeat(22)
    for (const type of ["put", "put", "delete"]) await publish("twice", user, type)
    await allIsApplied()
    await nothingIsLeft("twice")
    await restartNats()
    assert.deepEqual(await entries("twice"), [])
  })

  it("is counted once where the projector died between its two writes", async () => {
    await join("half", "hal")
    await join("half", "ida")
    await until(
      () => entries("half"),
      (left) => left.length === 2
    )
    await dieBetweenWrites("half", "hal")
    stopProjector = startProjector()
    await until(
      () => seen("half", "ida"),
      (registrations) => registrations === 1
    )
    assert.isUndefined(await seen("half", "hal"))
    await join("half", "hal")
    assert.equal(await seen("half", "hal"), 2)
  })

  it("is counted once where nats-server died between the two writes, too", async () => {
    await stopProjector()
    stopProjector = startProjector(60_000)
    for (const user of ["jon", "kim"]) await join("torn", user)
    await leave("torn", "jon")
    await join("torn", "jon")
    await dieBetweenWrites("torn", "jon")
    await nats.kill()
    await nats.restart()
    stopProjector = startProjector()
    await allIsApplied()
    await until(
      () => seen("torn", "kim"),
      (registrations) => registrations === 1
    )
    for (const user of ["jon", "kim"]) await leave("torn", user)
  })

  it("is counted once where a projector that has lost its lease removed the entry", async () => {
    const user = "l".repeat(22)
    await publish("late", user, "put")
    await join("late", "mia")
    await allIsSaved(admin)
    await stopProjector()
    stopProjector = startProjector()
    await allIsApplied()
    await removeEntry(admin, "late", user)
    await publish("late", user, "delete")
    await allIsApplied()
    assert.equal(await seen("late", "mia"), 1)
  })

  it("does not come back where a rebuild ended it", async () => {
    await stopProjector()
    stopProjector = startProjector(60_000)
    const user = "n".repeat(22)
    for (const type of ["put", "delete"]) await publish("wrong", user, type)
    await allIsApplied()
    await allIsSaved(admin)
    await stopProjector()
    const entry = await entryOf(admin, "wrong", user)
    const { seq } = (await admin.jsm.streams.getMessage(bucket, { last_by_subj: entry }))!
    await jetstream(admin.nc).publish(
      entry,
      JSON.stringify({ v: 1, seq, since: seq, on: true, was: 0 })
    )
    await rebuildAt(nats.url)
    assert.deepEqual(await entries("wrong"), [false])
    stopProjector = startProjector()
    await nothingIsLeft("wrong")
    await restartNats()
    assert.notInclude(await entries("wrong"), true)
  })

  it("takes no bytes, however many were made and ended", async () => {
    const users = Array.from({ length: 1_200 }, (_, n) => `u${n}`.padEnd(22, "_"))
    const { bytes } = (await admin.jsm.streams.info(bucket)).state
    for (const type of ["put", "delete"])
      await Promise.all(users.map((user) => publish("many", user, type)))
    await allIsApplied()
    await nothingIsLeft("many")
    // One entry counts the registrations of all users whose names begin alike.
    assert.isAtMost((await admin.jsm.streams.info(bucket)).state.bytes, bytes + 65_536)
  })
})
