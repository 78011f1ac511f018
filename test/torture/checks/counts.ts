// What the HTTP API says of broadcasts and channels is what WORK has and what the model knows.
import { channelToken, isDirect } from "#streams/tokens.ts"
import { claimOf } from "../model/audience.ts"
import { type Broadcast, isIn, type Model, type User } from "../model/model.ts"
import type { RecordedBroadcast } from "../model/recorded.ts"
import { readBucket } from "../nats/read.ts"
import { broadcastsOf, type Check, few, type Look, patient } from "./check.ts"

const fatesOf = ({ accepted, pushes }: RecordedBroadcast): Record<string, number> => {
  const ends = { delivered: 0, gone: 0, dead: 0, expired: 0, cancelled: 0 }
  const counts = { accepted, retrying: 0, ...ends }
  const result: Record<string, number> = counts
  for (const { last } of pushes.values()) result[last.fate] = (result[last.fate] ?? 0) + 1
  return result
}

/** The least and the greatest possible number of named users without a subscription. */
const withoutOf = (broadcast: Broadcast): readonly [number, number] => {
  const claimsOf = (user: User) => user.subscriptions.map((one) => claimOf(one, broadcast))
  const named = [...broadcast.users].filter((user) => !broadcast.except.has(user))
  const claims = named.map(claimsOf)
  const sure = claims.filter((all) => all.every((claim) => claim === "must not")).length
  const possible = claims.filter((all) => all.every((claim) => claim !== "must")).length
  return [broadcast.strangers + sure, broadcast.strangers + possible]
}

const countsOfBroadcast = async (look: Look, recorded: RecordedBroadcast) => {
  const broadcast = look.model.broadcasts.get(recorded.marker ?? "")!
  const path = `/channels/${encodeURIComponent(recorded.channel)}/broadcasts/${recorded.id}`
  const asked = isDirect(recorded.channel)
    ? { method: "NATS", path: "broadcast", body: { broadcast: String(recorded.id) } }
    : { method: "GET", path, user: "publisher" }
  const response = await look.gateways.until(asked, [200], AbortSignal.timeout(20_000))
  const data = response?.body?.data
  if (data === undefined) return [`GET broadcast ${recorded.id}: no response in 20 s`]
  const wrong = Object.entries(fatesOf(recorded)).filter(([fate, count]) => data[fate] !== count)
  const parts = wrong.map(([fate, count]) => `${fate} ${data[fate]}, not ${count}`)
  if (recorded.accepted !== recorded.pushes.size)
    parts.push(
      `the shards stated ${recorded.accepted} pushes, ${recorded.pushes.size} are recorded`
    )
  const without = data.without_subscription ?? 0
  const [sure, most] = withoutOf(broadcast)
  // Cancelled before it was planned, it goes to nobody, and nobody is looked for. A redrive leaves
  // out whom the broadcast before reached: these have a subscription.
  const isSure = broadcast.cancelled === undefined && broadcast.undelivered === undefined
  const least = isSure ? sure : 0
  if (without !== recorded.withoutSubscription || without < least || without > most)
    parts.push(
      `without_subscription ${without}, recorded ${recorded.withoutSubscription}, ` +
        `and at least ${least}, at most ${most}`
    )
  if (data.finished !== true) parts.push("is not finished")
  const state = broadcast.cancelled?.ackedAt === undefined ? "finished" : "cancelled"
  if (!broadcast.terms.some(({ rate }) => rate === data.rate))
    parts.push(`has the rate ${data.rate}, not ${broadcast.terms[0]!.rate}`)
  if (data.pause_when?.failed_share !== broadcast.failedShare)
    parts.push(`has the failed share ${data.pause_when?.failed_share}`)
  if (data.state !== state) parts.push(`is ${data.state}, not ${state}`)
  return parts.map((part) => `GET broadcast ${recorded.id}: ${part}`)
}

const membersOf = (model: Model, channel: string) =>
  model.users.filter((user) => isIn(user, channel))

/** Sequence since which somebody is registered, by the bucket. */
const sinceOf = async ({ client }: Look, channel: string): Promise<number> => {
  const entries = await readBucket(client, "bellcast_channels")
  return JSON.parse(entries.get(`${channelToken(channel)}.registrations`) ?? "{}").since ?? 0
}

const countsOfChannel = async (look: Look, channel: string) => {
  const members = membersOf(look.model, channel)
  const [first] = members
  if (first === undefined) return []
  // Pushes from before everybody left once are forgotten.
  const since = await sinceOf(look, channel)
  let pushes = 0
  for (const one of look.recorded.broadcasts.values())
    if (one.channel === channel && (one.starts[0]?.seq ?? one.id) > since)
      pushes += fatesOf(one)["delivered"] ?? 0
  const asked = {
    method: "GET",
    path: `/channels/${encodeURIComponent(channel)}`,
    user: first.name
  }
  const response = await look.gateways.until(asked, [200], AbortSignal.timeout(20_000))
  const { push, registrations } = response?.body?.data ?? {}
  return [
    ...(registrations === members.length
      ? []
      : [`channel ${channel}: ${registrations} registrations, not ${members.length}`]),
    ...(push === pushes ? [] : [`channel ${channel}: ${push} pushes, not ${pushes}`])
  ]
}

const countAll = async (look: Look): Promise<ReadonlyArray<string>> => {
  const violations: Array<string> = []
  const markers = new Set(broadcastsOf(look).map(({ marker }) => marker))
  for (const recorded of look.recorded.broadcasts.values())
    if (recorded.marker !== undefined && markers.has(recorded.marker))
      violations.push(...(await countsOfBroadcast(look, recorded)))
  for (const channel of look.model.channels)
    violations.push(...(await countsOfChannel(look, channel)))
  return few(violations)
}

export const counts: Check = patient({ name: "counts are the truth", run: countAll })
