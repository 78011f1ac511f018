// A store as a version of Bellcast left it: all messages of LOG and WORK, and what the service then
// showed. A message cannot be stored with a time of the past, and WORK forgets after 35 days: so
// when a store is opened, all of its times move by as much as makes its end the present.
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { isDeepStrictEqual } from "node:util"
import { gunzipSync, gzipSync } from "node:zlib"
import { headers } from "@nats-io/transport-node"
import { Effect } from "effect"
import { endpointHash } from "#domain/subscription/owners.ts"
import type { Timeline } from "#domain/timeline.ts"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { projections } from "#streams/buckets.ts"
import { storedForm } from "#streams/index.ts"
import { call, until } from "./client.ts"
import type { NatsAdmin } from "./nats-admin.ts"

export interface KeptMessage {
  readonly seq: number
  readonly subject: string
  /** When NATS stored it, milliseconds since the epoch. */
  readonly at: number
  readonly headers: ReadonlyArray<readonly [string, string]>
  readonly text: string
}

/** The response of the service to a request of a user. */
export interface KeptView {
  readonly path: string
  readonly user: string
  readonly status: number
  readonly body: unknown
}

export interface KeptStore {
  readonly form: string
  readonly log: ReadonlyArray<KeptMessage>
  readonly work: ReadonlyArray<KeptMessage>
  /** The entries of each bucket but `cache`, without checkpoints. */
  readonly buckets: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly views: ReadonlyArray<KeptView>
  /** The secrets with which it was made, which are those of tests. */
  readonly env: Readonly<Record<string, string>>
  /** The port at which its push service was. */
  readonly pushPort: number
  /** A broadcast of which pushes are dead. */
  readonly redrivable: string
}

export const folder = new URL("../stores/", import.meta.url)
/** Names of the files: the form, and a count of those that were recorded with it. */
export const keptNames: ReadonlyArray<string> = readdirSync(folder).filter((name) =>
  name.endsWith(".json.gz")
)

const nameOf = (count: number) => `form-${storedForm.streams}-${count}.json.gz`

/** The stores of the present form. */
export const presentNames = keptNames.filter((name) =>
  name.startsWith(`form-${storedForm.streams}-`)
)

export const readKept = (name: string): KeptStore =>
  JSON.parse(gunzipSync(readFileSync(new URL(name, folder))).toString())

export const writeKept = (store: KeptStore): void =>
  writeFileSync(
    new URL(nameOf(presentNames.length + 1), folder),
    gzipSync(JSON.stringify(store), { level: 9 })
  )

/** All messages of a stream. */
export const messagesOf = async ({ jsm }: NatsAdmin, stream: string) => {
  const { state } = await jsm.streams.info(stream)
  const found: Array<KeptMessage> = []
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const msg = await jsm.streams.getMessage(stream, { seq })
    if (msg === null) continue
    const names = msg.header.keys()
    found.push({
      seq,
      subject: msg.subject,
      at: msg.time.getTime(),
      headers: names.flatMap((name) => msg.header.values(name).map((one) => [name, one] as const)),
      text: msg.string()
    })
  }
  return found
}

/** Every entry of the buckets that can be made again, but checkpoints. */
export const entriesOf = async (admin: NatsAdmin): Promise<KeptStore["buckets"]> => {
  const all: Record<string, Record<string, unknown>> = {}
  for (const bucket of projections) {
    const entries: Record<string, unknown> = {}
    for (const { subject, text } of await messagesOf(admin, `KV_bellcast_${bucket}`)) {
      const key = subject.slice(`$KV.bellcast_${bucket}.`.length)
      if (key !== "meta" && text !== "") entries[key] = JSON.parse(text)
    }
    all[bucket] = entries
  }
  return all
}

export const viewsOf = (
  url: string,
  wanted: ReadonlyArray<Pick<KeptView, "path" | "user">>
): Promise<ReadonlyArray<KeptView>> =>
  Promise.all(
    wanted.map(async ({ path, user }) => {
      const { body, status } = await until(
        () => call(url, "GET", path, user),
        (response) => response.status < 500
      )
      return { path, user, status, body }
    })
  )

/** Headers that say how a message was stored, not what it is. */
const isOfStoring = (name: string): boolean => /^Nats-(Batch|Expected)-/i.test(name)

/** Of what fills the place of a message that was deleted. */
const fillers = { BELLCAST_LOG: "bellcast.cmd.part.rest", BELLCAST_WORK: "bellcast.dead.a.1.a.a" }

/** A time in milliseconds, in JSON; a time of RFC 3339. */
const times = /(?<![\d.])1[6-9]\d{11}(?![\d.])|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g

/** The store as it had been with its push service at this port. */
export const atPort = (store: KeptStore, port: number): KeptStore => {
  const former = new RegExp(`(?<=127\\.0\\.0\\.1:|=3A)${store.pushPort}(?!\\d)`, "g")
  const moved = (text: string) => text.replace(former, String(port))
  const text = JSON.stringify(store)
  const endpoints = new Set(text.match(/http:\/\/127\.0\.0\.1:[^"\\]+/g))
  let result = moved(text)
  // Ids are made of endpoints, and keys of the owners of endpoints of their beginnings.
  for (const endpoint of endpoints) {
    const [from, to] = [endpointHash(endpoint), endpointHash(moved(endpoint))]
    const page = (id: string) => `"=endpoints.${id.slice(0, 4)}"`
    result = result.replaceAll(from, to).replaceAll(page(from), page(to))
  }
  return { ...(JSON.parse(result) as KeptStore), pushPort: port }
}

export interface Opened {
  /** The text of a store with its times moved to the present. */
  readonly moved: (text: string) => string
}

/** Stores the messages of a kept store on an empty server, with the same sequences. */
export const openKept = async (
  url: string,
  admin: NatsAdmin,
  store: KeptStore
): Promise<Opened> => {
  await Effect.runPromise(
    provision(1).pipe(Effect.provide(natsLayer({ url, name: "test" })), Effect.scoped)
  )
  const recorded = Math.max(...[...store.log, ...store.work].map(({ at }) => at))
  const delta = Date.now() - recorded
  const stored = new Map<number, number>()
  const millisAt = (millis: number) =>
    stored.get(millis) ?? stored.get(millis - 1) ?? stored.get(millis + 1) ?? millis + delta
  const moved = (text: string) =>
    text.replace(times, (time) =>
      time.includes("T")
        ? new Date(millisAt(Date.parse(time))).toISOString()
        : String(millisAt(Number(time)))
    )
  const streams = { BELLCAST_LOG: store.log, BELLCAST_WORK: store.work } as const
  for (const name of ["BELLCAST_LOG", "BELLCAST_WORK"] as const) {
    await fill(admin, name, streams[name], moved, (one, at) => void stored.set(one.at, at))
    await setForm(admin, name, store.form)
  }
  return { moved }
}

const fill = async (
  admin: NatsAdmin,
  stream: keyof typeof fillers,
  messages: ReadonlyArray<KeptMessage>,
  moved: (text: string) => string,
  note: (one: KeptMessage, at: number) => void
) => {
  const { jsm, nc } = admin
  let last = 0
  const put = async (subject: string, text: string, all: KeptMessage["headers"]) => {
    const set = headers()
    for (const [name, value] of all) if (!isOfStoring(name)) set.append(name, value)
    const ack = await nc.request(subject, text, { headers: set, timeout: 10_000 })
    const { error, seq } = ack.json<{ seq: number; error?: { description: string } }>()
    if (error !== undefined) throw new Error(`${subject}: ${error.description}`)
    last = seq
  }
  for (const one of messages) {
    while (last < one.seq - 1) {
      await put(fillers[stream], "{}", [])
      await jsm.streams.deleteMessage(stream, last)
    }
    const values = one.headers.map(([name, value]) => [name, moved(value)] as const)
    await put(one.subject, moved(one.text), values)
    if (last !== one.seq) throw new Error(`${stream}: ${last} is not ${one.seq}`)
    note(one, (await jsm.streams.getMessage(stream, { seq: last }))!.time.getTime())
  }
}

/** The form in which a stream says that it is stored. */
export const setForm = async ({ jsm }: NatsAdmin, stream: string, form: string) => {
  const { config } = await jsm.streams.info(stream)
  const metadata = { ...config.metadata, bellcast_form: form }
  await jsm.streams.update(stream, { ...config, metadata })
}

/**
 * Messages of minutes are stored again within seconds. So a time that follows from when a message
 * was stored may differ by as much as the recording took.
 */
const toleranceMillis = 10 * 60_000
const isTime = (value: unknown): value is number => typeof value === "number" && value > 1.6e12

/** The pushes of each fate. Their minutes are those in which NATS stored the outcomes again. */
const totalsOf = (timeline: unknown) => {
  const { fates, minutes } = timeline as Timeline
  const totals = Object.entries(fates).map(
    ([fate, [, ...counts]]) => [fate, counts.reduce((sum, count) => sum + count, 0)] as const
  )
  return { minutes, ...Object.fromEntries(totals) }
}

const hasSameTotals = (timeline: unknown, like: unknown) =>
  isDeepStrictEqual(totalsOf(timeline), totalsOf(like))

/** A value with times in place of those of `like`, where they are as good as equal. */
export const alike = (value: unknown, like: unknown): unknown => {
  if (isTime(value) && isTime(like)) return Math.abs(value - like) <= toleranceMillis ? like : value
  if (typeof value === "string" && typeof like === "string" && /^\d{4}-\d\d-\d\dT/.test(value)) {
    const apart = Math.abs(Date.parse(value) - Date.parse(like))
    return apart <= toleranceMillis ? like : value
  }
  if (Array.isArray(value) && Array.isArray(like)) return value.map((one, n) => alike(one, like[n]))
  if (typeof value !== "object" || value === null || typeof like !== "object" || like === null)
    return value
  const others = like as Record<string, unknown>
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) =>
      name === "timeline" && name in others && hasSameTotals(one, others[name])
        ? [name, others[name]]
        : [name, alike(one, others[name])]
    )
  )
}
