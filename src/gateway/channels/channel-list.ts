// GET /channels: the channels that somebody joined and the caller may publish on, by the beginning
// of their names, in pages. What a page costs follows the page: the names are an index in memory
// (names.ts), and only those of the page are read from NATS.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { matchesWildcard } from "#basics/wildcard.ts"
import type { Caller } from "#identity/identity.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { readParts } from "#nats/kv/entries.ts"
import { keys } from "#streams/buckets.ts"
import { channelBytesMax, channelToken } from "#streams/tokens.ts"
import type { Call } from "../http/request.ts"
import { type ErrorDetail, ok } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { limitOf, nextPage } from "../listing/page.ts"
import { type ListInput, readPages, singles } from "../listing/query.ts"
import { operation } from "../operation.ts"
import { mayPublish, publishPatterns } from "../rights.ts"
import { ChannelNames, compareNames, folded, type Names } from "./names.ts"

/** Most channels of a page: their counts fit into one response of NATS. */
const channelsMax = 250
/** Comparisons of names in memory with patterns at a time: some milliseconds. */
const comparedMax = 20_000
/** A page is looked for so often at most: channels may be forgotten, and patterns match few. */
const roundsMax = 4
const readsAtOnce = 16

const Channel = Schema.Struct({ id: Schema.String, registrations: Schema.Int }).annotate({
  identifier: "ListedChannel"
})
type Channel = typeof Channel.Type

interface Input extends ListInput {
  readonly prefix: string
}

export const channelsGet = operation({
  access: "principal",
  exposes: ["Next-Page"],
  read: Effect.fnUntraced(function* (call: Call, errors: Array<ErrorDetail>) {
    const input = yield* readPages(call, errors)
    const { refuse, text } = singles(call.query, errors)
    const prefix = text("prefix") ?? ""
    if (Buffer.byteLength(prefix) > channelBytesMax)
      refuse("prefix", `a name has at most ${channelBytesMax} bytes`)
    return { ...input, prefix } satisfies Input
  }),
  run: Effect.fn("Gateway.listChannels")(function* ({ listing, prefix }, call) {
    const limit = yield* limitOf(listing, channelsMax)
    const behind = listing.token?.last_object["id"] as string | undefined
    const { data, place } = yield* pageOf(call.caller!, prefix, behind, limit)
    const next = place === undefined ? undefined : { id: place }
    const shown = { path: "/channels", place: next, limit }
    return ok({ data }, { ...noStore, ...(yield* nextPage(call, shown)) })
  }),
  doc: {
    summary: "List the channels that somebody joined and the caller may publish on",
    parameters: ["pages", "channels"],
    responses: { 200: Schema.Struct({ data: Schema.Array(Channel) }) },
    errors: [400, 413]
  }
})

/** A page of channels, and the name behind which the next one begins; undefined: there is none. */
const pageOf = Effect.fnUntraced(function* (
  caller: Caller,
  prefix: string,
  behind: string | undefined,
  limit: number
) {
  const candidates = yield* candidatesOf(caller, prefix)
  const data: Array<Channel> = []
  let place = behind
  for (let round = 0; round < roundsMax; round++) {
    const some = candidates(place, limit + 1)
    const counted = yield* joined(some.names)
    // A revoked grant counts at once: the index may be a moment late.
    const isAllowed = ({ id }: Channel) => mayPublish(caller, id)
    data.push(...(yield* Effect.filter(counted, isAllowed, { concurrency: readsAtOnce })))
    if (data.length > limit) return { data: data.slice(0, limit), place: data[limit - 1]!.id }
    place = some.place
    if (place === undefined) break
  }
  return { data, place }
})

/** The channels among some that somebody is registered to. */
const joined = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
  if (names.length === 0) return []
  const buckets = yield* Buckets
  const wanted = new Map(names.map((id) => [keys.channelRegistrations(channelToken(id)), id]))
  const minRevision = yield* buckets.revision("channels")
  const entries = yield* readParts(buckets, "channels", [...wanted.keys()], minRevision)
  const counts = new Map<string, number>(
    entries.map(({ key, value }) => [key, value.registrations])
  )
  return [...wanted].flatMap(([key, id]) => {
    const registrations = counts.get(key) ?? 0
    return registrations > 0 ? [{ id, registrations }] : []
  })
})

/**
 * Returns a function for the next names on which a caller may publish, in order, and where it
 * stopped; undefined: there are no others. The names of patterns are in the index; those that
 * rights name in full need none of it.
 */
const candidatesOf = Effect.fnUntraced(function* (caller: Caller, prefix: string) {
  const index = yield* ChannelNames
  const { mayBeGranted, patterns } = yield* publishPatterns(caller)
  const granted = mayBeGranted ? yield* index.grantedTo(caller.principals) : []
  const isWide = (pattern: string) => pattern.includes("*")
  const wide = patterns.filter(isWide)
  const all = wide.length === 0 ? undefined : yield* index.joined
  const wanted = folded(prefix)
  const named = [...new Set([...granted, ...patterns.filter((each) => !isWide(each))])]
    .filter((name) => folded(name).startsWith(wanted))
    .sort(compareNames)
  return (behind: string | undefined, count: number) => {
    const { matches, stop } = all === undefined ? nowhere : walk(all, wide, prefix, behind, count)
    const others = named.filter(
      (name) =>
        (behind === undefined || compareNames(name, behind) > 0) &&
        (stop === undefined || compareNames(name, stop) <= 0)
    )
    const found = [...new Set([...matches, ...others])].sort(compareNames)
    const names = found.slice(0, count)
    return { names, place: names.length < found.length ? names.at(-1) : stop }
  }
})

interface Walked {
  readonly matches: ReadonlyArray<string>
  /** The last name that was compared, if others follow. */
  readonly stop?: string
}

const nowhere: Walked = { matches: [] }

/** The next names of the index that match one of these patterns and begin with a prefix. */
const walk = (
  names: Names,
  patterns: ReadonlyArray<string>,
  prefix: string,
  behind: string | undefined,
  count: number
): Walked => {
  const ranges = patterns.map((each) => names.range(behind, prefix, each.split("*")[0]!))
  const matches: Array<string> = []
  let compared = 0
  for (const name of names.within(ranges)) {
    if (patterns.some((each) => matchesWildcard(each, name))) matches.push(name)
    compared += patterns.length
    if (matches.length === count || compared >= comparedMax) return { matches, stop: name }
  }
  return { matches }
}
