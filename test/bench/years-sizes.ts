// The bytes of each kind of message of LOG, as a real service stores it on a real nats-server, and
// one message of each kind, which the simulation of years repeats.
import { Effect } from "effect"
import type { Message } from "#domain/messages/table.ts"
import { Nats } from "#nats/connection/connection.ts"
import type { StoredMessage } from "#nats/connection/request.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { streamInfo } from "#nats/stream/info.ts"
import { type Stored, storedOf } from "#nats/stream/stored.ts"
import { streams } from "#streams/index.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { call, finished, finishedAt, publish, publishAt, until } from "../support/client.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { startService, vapid } from "../support/service.ts"
import { idOf, tokenOf } from "../support/users.ts"
import { startNats } from "./servers.ts"

/** Users of each kind. Their messages differ by some digits. */
const users = 20
/** So few of all that the guard against mistaken push services lets them go. */
const goneShare = 0.2
const channels = { quiet: "news-quiet", read: "news-daily" }

/** As long as one of Chrome. Only users of the channel without broadcasts have such endpoints. */
export const endpointOf = (user: number | string, n: number) =>
  `https://fcm.googleapis.com/fcm/send/${user}-${n}:`.padEnd(188, "x")

const notification = {
  web_push: 8030,
  notification: {
    title: "The news of this morning",
    body: "x".repeat(140),
    navigate: "https://example.com/news/a-page-with-a-name"
  }
}
/** So many languages that they need a second message. */
const variants = Object.fromEntries(
  Array.from({ length: 20 }, (_, n) => [
    `de-x-${String(n).padStart(2, "0")}`,
    { ...notification, more: "y".repeat(1_000) }
  ])
)

export type Kind = "subscription.renewed" | "registration.rejected" | Message["type"]

export interface Sample {
  /** Bytes that one such message takes of a stream: a mean. */
  readonly bytes: number
  readonly message: Message
  /** Headers of the message's own, which a publisher or the service gave. */
  readonly headers: Readonly<Record<string, string>>
}
export type Samples = ReadonlyMap<Kind, Sample>

/** Bytes of a message in a file of nats-server, as its `fileStoreMsgSize` computes them. */
const bytesOf = ({ data = "", hdrs = "", subject }: StoredMessage): number => {
  const [body, head] = [data, hdrs].map((text) => Buffer.byteLength(text, "base64"))
  return 30 + subject.length + body! + (head === 0 ? 0 : 4 + head!)
}

const headersOf = ({ hdrs = "" }: StoredMessage): Record<string, string> => {
  const lines = Buffer.from(hdrs, "base64").toString().split("\r\n").slice(1)
  const named = lines.flatMap((line) => {
    const [, name, value] = /^([^:]+): ?(.*)$/.exec(line) ?? []
    return name === undefined ? [] : [[name, value!] as const]
  })
  const isOwn = (name: string) => !/^(Nats-|Bellcast-(Type|Id)$)/.test(name)
  return Object.fromEntries(named.filter(([name]) => isOwn(name)))
}

/** The kind of a message; undefined: its size is not that of a user's. */
const kindOf = ({ message, subject }: Stored): Kind | undefined => {
  if (message.type === "malformed") throw new Error(`${subject}: ${message.reason}`)
  if (message.type === "registration.put" && message.registrationsMax === 0)
    return "registration.rejected"
  if (message.type !== "subscription.put") return message.type
  if (!message.data.endpoint.startsWith("https://fcm.")) return undefined
  return message.replaces === undefined ? "subscription.put" : "subscription.renewed"
}

/** Reads all of LOG. Fails unless the bytes of its messages are those of the stream. */
const readSamples = Effect.gen(function* () {
  const nats = yield* Nats
  const info = (yield* streamInfo(nats, streams.log.name, 5_000))!
  const found = new Map<Kind, Sample & { count: number; sum: number }>()
  let sum = 0
  for (let seq = 1; seq <= info.state.last_seq; seq++) {
    const raw = (yield* nats.message(streams.log.name, { seq }))!
    const [bytes, stored] = [bytesOf(raw), storedOf(raw)]
    sum += bytes
    const kind = kindOf(stored)
    if (kind === undefined) continue
    const before = found.get(kind) ?? { count: 0, sum: 0 }
    found.set(kind, {
      count: before.count + 1,
      sum: before.sum + bytes,
      bytes: (before.sum + bytes) / (before.count + 1),
      message: stored.message as Message,
      headers: headersOf(raw)
    })
  }
  if (sum !== info.state.bytes) throw new Error(`${sum} bytes, but LOG has ${info.state.bytes}`)
  return found as Samples
})

/** Has a service store messages of each kind, one after the other, as a site's users come. */
export const readStoredSizes = async (): Promise<Samples> => {
  const nats = await startNats()
  const push = await startPushService({ decrypt: false })
  const service = await startService({ natsUrl: nats.url })
  const ask = async (
    method: string,
    path: string,
    user: string | undefined,
    body?: object,
    headers?: Record<string, string>
  ) => {
    const answer = await call(service.url, method, path, user, body, headers)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const onLog = <A, E>(effect: Effect.Effect<A, E, Nats | EventLog>) =>
    Effect.runPromise(effect.pipe(Effect.provide(natsLayer({ url: nats.url, name: "years" }))))
  const registrationOn = (channel: string) => `/channels/${channel}/registration`

  const dataOf = (subscription: object) => ({
    ...subscription,
    locale: "en",
    vapid_public_key: vapid.publicKey
  })
  for (let n = 0; n < users; n++) {
    const [user, { keys }] = [`user${n}`, push.subscribe().subscription]
    const first = dataOf({ endpoint: endpointOf(n, 0), keys })
    const prefer = { Prefer: "renewal" }
    const { renewal } = await ask("POST", "/subscriptions", user, { data: first }, prefer)
    await ask("PUT", registrationOn(channels.quiet), user)
    const data = { ...first, endpoint: endpointOf(n, 1) }
    const renewed = await ask("POST", "/subscriptions/replace", undefined, { renewal, data })
    await ask("DELETE", `/subscriptions/${renewed.data.id}`, user)
    await ask("DELETE", registrationOn(channels.quiet), user)
  }

  const agents = Array.from({ length: users / goneShare }, () => push.subscribe())
  for (const [n, { subscription }] of agents.entries()) {
    await ask("POST", "/subscriptions", `reader${n}`, { data: subscription })
    await ask("PUT", registrationOn(channels.read), `reader${n}`)
  }
  const ends = async (broadcast: Promise<string>) =>
    finished(service.url, channels.read, await broadcast)
  const delayed = (seconds: number) =>
    publishAt(service.url, `/channels/${channels.read}`, {
      data: notification,
      delay_seconds: seconds
    })
  for (let n = 0; n < 3; n++) {
    await ends(publish(service.url, channels.read, notification, { TTL: "86400" }))
    await ends(delayed(1))
  }
  const several = await publishAt(service.url, "/broadcasts", {
    data: notification,
    data_by_locale: variants,
    to: { channels: [channels.read, channels.quiet] }
  })
  await finishedAt(service.url, `/broadcasts/${several}`)
  for (const agent of agents.slice(0, users)) agent.unsubscribe()
  await ends(publish(service.url, channels.read, notification))

  await runCli(["permissions", "grant", "news", `signed:${"u".repeat(30)}`, "--nats", nats.url])
  const token = ["create", "billing", "--expires=90d", "--channel=news*"]
  await runCli(["token", ...token, "--nats", nats.url])
  const command = await onLog(
    Effect.flatMap(EventLog, ({ append }) =>
      append("log", {
        subject: subjects.registration(channelToken("news-more"), tokenOf("user0")),
        type: "registration.put",
        body: { user: idOf("user0"), at: Date.now(), registrationsMax: 0 }
      })
    )
  )
  const rejection = Effect.flatMap(EventLog, ({ last }) =>
    last("log", subjects.rejected(command.seq))
  )
  await until(
    () => onLog(rejection),
    (fact) => fact !== undefined
  )
  const samples = await onLog(readSamples)
  await service.stop()
  await push[Symbol.asyncDispose]()
  await nats.stop()
  return samples
}
