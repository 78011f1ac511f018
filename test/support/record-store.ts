// Records a store of the present form: the history of `history.ts`, which comes from a seed, and
// after it a service with browsers, so that every message of the table is in it.
import { Effect, type Layer, Schedule } from "effect"
import { numbersRead } from "#domain/messages/forms.ts"
import { provision } from "#nats/admin/provision.ts"
import { noRole, Processes } from "#nats/connection/processes.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { storedForm } from "#streams/index.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { call, finished, finishedAt, publish, publishAt, until } from "./client.ts"
import { makeHistory, rebuildAt } from "./history.ts"
import { userOf } from "./history-commands.ts"
import { entriesOf, type KeptStore, messagesOf, viewsOf } from "./kept-store.ts"
import { startNats } from "./nats.ts"
import { connectAdmin, type NatsAdmin } from "./nats-admin.ts"
import { startPushService } from "./push-service.ts"
import { settled } from "./quiet.ts"
import { secretEnvironment, sources, startService } from "./service.ts"
import { inMillis } from "./times.ts"
import type { SubscriptionJson } from "./user-agent.ts"
import { idOf } from "./users.ts"

/** A recording is made seldom, and maybe on a busy machine. */
const patienceMillis = 200_000

/** The settings of the service of a kept store, beside its secrets. */
const rights = {
  BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher"),
  BELLCAST_OPERATOR_PRINCIPALS: idOf("operator")
}

/** Waits until this process writes the newest number of each message, as all others read it. */
const newestNumbers = Effect.gen(function* () {
  if (Object.keys(numbersRead).length === 0) return
  const { announce, readByAll } = yield* Processes
  yield* announce([noRole])
  const isReadByAll = Effect.sync(() =>
    Object.entries(numbersRead).every(([name, number]) => readByAll(name) === number)
  )
  yield* Effect.repeat(isReadByAll, { until: Boolean, schedule: Schedule.spaced("1 second") })
})

/** Runs what appends messages, in their newest numbers. */
const append = <A, E>(
  url: string,
  program: Effect.Effect<A, E, Layer.Success<ReturnType<typeof natsLayer>>>
) =>
  Effect.andThen(newestNumbers, program).pipe(
    Effect.scoped,
    Effect.provide(natsLayer({ url, name: "test" })),
    Effect.runPromise
  )

/** Messages that no service appends in so short a time. */
const appendRest = Effect.gen(function* () {
  const log = yield* EventLog
  const user = "user 1"
  const subject = subjects.publisher(channelToken("closed"))
  const grant = { principal: "basicauth:x", at: 1 }
  yield* log.append("log", { subject, type: "registrar.put", body: grant })
  yield* log.append("log", { subject, type: "registrar.delete", body: grant })
  yield* log.append("log", {
    subject: subjects.subscription(userOf(1)),
    type: "subscription.renewable",
    body: {
      user,
      id: "a".repeat(64),
      generation: 1,
      renewal: "b".repeat(43),
      isRepeated: false,
      at: 1
    }
  })
  const part = { users: [userOf(1)] }
  yield* log.append("log", { subject: subjects.part, type: "direct.part", body: part })
})

/**
 * The projector deletes the message of a draft that is over, and that of an erasure that is done:
 * so these come at the end.
 */
const appendEnds = Effect.gen(function* () {
  const log = yield* EventLog
  const subject = subjects.draft("over")
  const body = { user: userOf(1), at: 2 }
  yield* log.append("log", { subject, type: "draft.delete", body })
  const stranger = userOf(99)
  yield* log.append("log", {
    subject: subjects.begun(channelToken("erased")),
    type: "channel.begun",
    body: { since: 1, lastModified: 1, upTo: 1 }
  })
  yield* log.append("log", {
    subject: subjects.summed(channelToken("erased")),
    type: "channel.summed",
    body: { since: 1, upTo: 1, pushes: 1, seq: 1, lastModified: 1 }
  })
  const erased = { command: 1, at: 1 }
  yield* log.append("log", {
    subject: subjects.erased(stranger),
    type: "user.erased",
    body: erased
  })
  const erase = subjects.erase(stranger)
  yield* log.append("log", { subject: erase, type: "user.erase", body: { at: 2 } })
})

/** On a busy machine a service may be unavailable for seconds. All of these may be repeated. */
const untilDone = (url: string, method: string, path: string, user: string, body?: object) =>
  until(
    () => call(url, method, path, user, body),
    ({ status }) => status < 300,
    patienceMillis
  )

const subscribeAll = async (
  url: string,
  channel: string,
  subscriptions: ReadonlyArray<SubscriptionJson>
) => {
  for (const [n, data] of subscriptions.entries()) {
    const user = `${channel}${n}`
    await untilDone(url, "POST", "/subscriptions", user, { data })
    await untilDone(url, "PUT", `/channels/${channel}/registration`, user)
  }
}

/** Broadcasts in every state. Returns one of which a push is dead. */
const publishAll = async (url: string, admin: NatsAdmin) => {
  const done = await publish(url, "kept", { n: 1 })
  await finished(url, "kept", done, patienceMillis)
  const at = inMillis(60_000)
  const changed = await publishAt(url, "/channels/kept", { data: { n: 2 }, at })
  await untilDone(url, "PATCH", `/broadcasts/${changed}`, "publisher", {
    data: { at: inMillis(1_500) }
  })
  await finishedAt(url, `/broadcasts/${changed}`, "publisher", patienceMillis)
  const held = await publish(url, "held", { n: 3 })
  for (const state of ["paused", "running", "cancelled"])
    await untilDone(url, "PATCH", `/broadcasts/${held}`, "publisher", { data: { state } })
  await finished(url, "held", held, patienceMillis)
  const to = { users: [idOf("kept0")] }
  const direct = await publishAt(url, "/broadcasts", { data: { n: 4 }, to })
  await finishedAt(url, `/broadcasts/${direct}`, "publisher", patienceMillis)
  await admin.nc.request("bellcast.cmd.broadcast.billing.kept", "no JSON")
  await until(
    () => admin.jsm.streams.info("BELLCAST_LOG", { subjects_filter: "bellcast.evt.rejected.*" }),
    ({ state }) => Object.keys(state.subjects ?? {}).length > 0
  )
  await publishAt(url, "/channels/kept", { data: { n: 5 }, at: inMillis(20 * 86_400_000) })
  return done
}

const wantedViews = (broadcasts: ReadonlyArray<string>) => [
  ...broadcasts.map((id) => ({ path: `/broadcasts/${id}`, user: "operator" })),
  ...["/broadcasts", "/dead", "/drafts", "/channels"].map((path) => ({ path, user: "operator" })),
  ...["kept", "held", "news"].flatMap((channel) => [
    { path: `/channels/${channel}`, user: "kept0" },
    { path: `/channels/${channel}/broadcasts`, user: "publisher" }
  ]),
  ...["kept0", "kept1", "held0"].flatMap((user) => [
    { path: "/subscriptions", user },
    { path: "/registrations", user },
    { path: `/users/${idOf(user)}`, user: "operator" }
  ])
]

export const recordStore = async (): Promise<KeptStore> => {
  await using nats = await startNats({ syncAlways: false })
  await append(nats.url, Effect.andThen(provision(1), Effect.andThen(makeHistory, appendRest)))
  // No plan is older than its registrations for a service. The tally would read this one first.
  await rebuildAt(nats.url)
  await using admin = await connectAdmin(nats.url)
  await using push = await startPushService()
  const env = { ...secretEnvironment, ...rights }
  await using service = await startService({
    natsUrl: nats.url,
    env,
    program: sources,
    readyTimeoutMillis: patienceMillis
  })
  // The service heard all others for as long as this process.
  await append(nats.url, Effect.void)
  const scripts = [["201"], ["503", "201"], ["400"]]
  const agents = scripts.map((script) => push.subscribe({ script }).subscription)
  await subscribeAll(service.url, "kept", agents)
  await subscribeAll(service.url, "held", [push.subscribe({ script: ["503"] }).subscription])
  const redrivable = await publishAll(service.url, admin)
  const { body } = await call(service.url, "GET", "/broadcasts", "operator")
  const ids = body.data.map(({ id }: { readonly id: string }) => id)
  const atRest = () =>
    settled(async () => JSON.stringify(await entriesOf(admin)), 3_000, patienceMillis)
  // The tally adds the pushes of a channel a second after the broadcast has finished.
  await atRest()
  const views = await viewsOf(service.url, wantedViews(ids))
  // Looks are stored, and what the projector deletes is deleted, before the service stops.
  await atRest()
  await service.stop()
  await append(nats.url, appendEnds)
  return {
    form: storedForm.streams,
    log: await messagesOf(admin, "BELLCAST_LOG"),
    work: await messagesOf(admin, "BELLCAST_WORK"),
    buckets: await entriesOf(admin),
    views,
    env,
    pushPort: Number(new URL(push.origin).port),
    redrivable
  }
}
