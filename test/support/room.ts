// A service whose streams a test fills and enlarges while it runs.
import { jetstream } from "@nats-io/jetstream"
import { headers as natsHeaders } from "@nats-io/transport-node"
import { assert, onTestFinished } from "vitest"
import { basicIds } from "#identity/policies/basicauth.ts"
import { pseudonyms } from "#identity/principals.ts"
import { bucketSubject, projections } from "#streams/buckets.ts"
import { call, until } from "./client.ts"
import { startNats } from "./nats.ts"
import { connectAdmin, type NatsAdmin } from "./nats-admin.ts"
import { startPushService } from "./push-service.ts"
import { type Service, secretEnvironment, startService } from "./service.ts"

const secret = secretEnvironment.BELLCAST_USERID_HMAC_SECRET

/** Two permits: two pushes that kept theirs would stop all others. */
const env = { BELLCAST_UNRECORDED_PUSHES_MAX: "2" }

/** Makes the streams so large that a small share of them is some messages. Nobody gets these. */
const addBallast = async ({ url }: Service, admin: NatsAdmin) => {
  const data = "x".repeat(3_900)
  const ballast = () => call(url, "POST", "/channels/ballast", "publisher", { data: { data } })
  for (let i = 0; i < 4; i++) await Promise.all(Array.from({ length: 25 }, ballast))
  // The ends of these broadcasts are recorded in LOG, too.
  await until(
    async () =>
      (await admin.jsm.streams.info("BELLCAST_LOG", { subjects_filter: "bellcast.evt.finished.>" }))
        .state,
    ({ subjects = {} }) => Object.keys(subjects).length === 100
  )
}

/** Buckets that are so large that a small share of them is some entries. Nobody reads these. */
const addBucketBallast = async ({ nc }: NatsAdmin) => {
  const value = JSON.stringify({ v: 1, seq: 0, pad: "x".repeat(2_000) })
  const key = (n: number) => `ballast${n}.ballast`
  for (const bucket of projections)
    for (let n = 0; n < 60; n++) await nc.request(bucketSubject(bucket, key(n)), value)
}

/** Repeats a request until its response has a status. */
export const becomes = (ask: () => ReturnType<typeof call>, status: number) =>
  until(ask, (answer) => answer.status === status)

export type Room = Awaited<ReturnType<typeof startRoom>>

/** The service, and what a test does to its streams and asks of it. */
export const startRoom = async (more: Readonly<Record<string, string>> = {}) => {
  const nats = await startNats({ syncAlways: false })
  const push = await startPushService()
  const admin = await connectAdmin(nats.url)
  const start = () => startService({ natsUrl: nats.url, env: { ...env, ...more } })
  const room = { service: await start() }
  await addBallast(room.service, admin)
  await addBucketBallast(admin)

  /**
   * Fills a stream to a share of its size. Returns a function that restores the size and waits
   * until the service sees it. The end of the test restores it, too: a test that failed must not
   * fail the next ones.
   */
  const fill = async (stream: string, share = 1) => {
    const { config, state } = await admin.jsm.streams.info(stream)
    const restore = () => admin.jsm.streams.update(stream, { max_bytes: config.max_bytes })
    onTestFinished(async () => {
      await restore()
    })
    await admin.jsm.streams.update(stream, { max_bytes: Math.floor(state.bytes / share) })
    return async () => {
      await restore()
      await becomes(heartbeat, 200)
    }
  }
  const subscribe = (user: string) =>
    call(room.service.url, "POST", "/subscriptions", user, { data: push.subscribe().subscription })
  const register = (channel: string, user: string) =>
    call(room.service.url, "PUT", `/channels/${channel}/registration`, user)
  const unregister = (channel: string, user: string) =>
    call(room.service.url, "DELETE", `/channels/${channel}/registration`, user)
  const broadcast = (channel: string) =>
    call(room.service.url, "POST", `/channels/${channel}`, "publisher", { data: { n: 1 } })
  const token = (user: string) =>
    pseudonyms(secret)(`basicauth:${basicIds(secret)(`${user}:secret`)}`)
  /** A user with a browser whose push service follows a script, on a channel. */
  const joinWith = async (channel: string, user: string, script: ReadonlyArray<string>) => {
    const agent = push.subscribe({ script })
    const data = agent.subscription
    // A gateway may hear a moment later that a stream has room again.
    const hasRoom = ({ status }: { readonly status: number }) => status !== 507
    const stored = await until(
      () => call(room.service.url, "POST", "/subscriptions", user, { data }),
      hasRoom
    )
    assert.equal(stored.status, 201)
    assert.equal((await until(() => register(channel, user), hasRoom)).status, 202)
    return agent
  }
  /** The type of the last command or fact about a user's subscriptions. */
  const lastOf = async (user: string) => {
    const last_by_subj = `bellcast.cmd.subscription.${token(user)}`
    const message = await admin.jsm.streams.getMessage("BELLCAST_LOG", { last_by_subj })
    return message?.header.get("Bellcast-Type")
  }
  /** Whether LOG has the fact that a user was erased: all that goes has gone by then. */
  const isErased = async (user: string) => {
    const filter = { subjects_filter: `bellcast.evt.erased.${token(user)}` }
    const { state } = await admin.jsm.streams.info("BELLCAST_LOG", filter)
    return Object.keys(state.subjects ?? {}).length > 0
  }
  const finishedFacts = async (channel: string) => {
    const filter = { subjects_filter: `bellcast.evt.finished.${channel}.>` }
    const { state } = await admin.jsm.streams.info("BELLCAST_LOG", filter)
    return Object.keys(state.subjects ?? {}).length
  }
  const entryOf = (broadcast: string) =>
    admin.jsm.streams.getMessage("KV_bellcast_broadcasts", {
      last_by_subj: `$KV.bellcast_broadcasts.${broadcast}`
    })
  /** A command sent to NATS directly: a gateway that knows the stream is full would refuse it. */
  const command = async (channel: string, user: string, what: "put" | "delete") => {
    const headers = natsHeaders()
    headers.set("Bellcast-Type", `registration.${what}/1`)
    const body = JSON.stringify({ user, at: Date.now() })
    const subject = `bellcast.cmd.registration.${channel}.${token(user)}`
    await jetstream(admin.nc).publish(subject, body, { headers })
  }
  /** A broadcast of a client of NATS on the channel sport, which nobody refuses. Returns its id. */
  const publishOnNats = async (n: number) => {
    const subject = "bellcast.cmd.broadcast.billing.sport"
    const { seq } = await jetstream(admin.nc).publish(subject, JSON.stringify({ data: { n } }))
    return String(seq)
  }
  const countOf = async (channel: string) => {
    const last_by_subj = `$KV.bellcast_channels.${channel}.registrations`
    const message = await admin.jsm.streams.getMessage("KV_bellcast_channels", { last_by_subj })
    return message?.json<{ registrations: number }>().registrations
  }
  const channelOf = (channel: string, user: string) =>
    call(room.service.url, "GET", `/channels/${channel}`, user)
  const heartbeat = () => call(room.service.url, "GET", "/__heartbeat__")

  const lastBecomes = (user: string, type: string) =>
    until(
      () => lastOf(user),
      (last) => last === type
    )
  const finishedFactsBecome = (channel: string, count: number) =>
    until(
      () => finishedFacts(channel),
      (now) => now === count
    )
  const entryIsGone = (broadcast: string) =>
    until(
      () => entryOf(broadcast),
      (entry) => entry === null
    )
  const restart = async () => {
    await room.service.kill()
    room.service = await start()
  }
  return Object.assign(room, {
    natsUrl: nats.url,
    push,
    admin,
    restart,
    lastBecomes,
    finishedFactsBecome,
    entryOf,
    entryIsGone,
    token,
    fill,
    subscribe,
    register,
    unregister,
    broadcast,
    joinWith,
    isErased,
    lastOf,
    finishedFacts,
    command,
    publishOnNats,
    countOf,
    channelOf,
    heartbeat,
    [Symbol.asyncDispose]: async () => {
      await admin[Symbol.asyncDispose]()
      await room.service[Symbol.asyncDispose]()
      await push[Symbol.asyncDispose]()
      await nats[Symbol.asyncDispose]()
    }
  })
}
