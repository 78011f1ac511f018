// Everything that is stored about one user, for an answer to a demand of access (Art. 15 GDPR):
// each message of LOG and WORK, and each entry of a bucket, that names the user by id or pseudonym.
// Reads whole streams: an index could miss a form that somebody adds later. Needs no permission
// but to read, which an auditor has.
import * as Effect from "effect/Effect"
import type { User } from "#identity/identity.ts"
import { Nats } from "#nats/connection/connection.ts"
import { attempt } from "#nats/connection/errors.ts"
import { textOf } from "#nats/connection/headers.ts"
import { type DirectMessage, readDirect, readFrom } from "#nats/stream/read-direct.ts"
import { bucketStream } from "#streams/buckets.ts"
import { streamNames, streams } from "#streams/index.ts"
import { isUserToken } from "#streams/tokens.ts"

/** A message or an entry, without what it has of other people. */
export interface Found {
  readonly stream: string
  readonly sequence: number
  /** RFC 3339. */
  readonly time: string
  readonly subject: string
  readonly headers?: Readonly<Record<string, string>>
  /** JSON; a text where the message has none. Absent: the message is empty. */
  readonly body?: unknown
}

/**
 * Passes to `see` all that names a user, stream by stream and in order, and returns how much there
 * was. What belongs to a broadcast to the user comes with it: its parts, which may hold its text,
 * and the changes of its state.
 */
export const everythingOf = Effect.fnUntraced(function* <E, R>(
  user: User,
  see: (found: Found) => Effect.Effect<void, E, R>
) {
  const nats = yield* Nats
  const reading: Reading = { person: personOf(user), parts: new Set(), broadcasts: new Set() }
  let count = 0
  for (const stream of streamNames) {
    const batches = readDirect(nats, stream, ">")
    let isMore = true
    while (isMore) {
      const next = yield* attempt(`read ${stream}`, () => batches.next())
      const batch = next.value ?? []
      const found = yield* Effect.forEach(batch, (msg) => wantedWith(nats, reading, stream, msg))
      for (const msg of found.flat()) yield* see(foundIn(reading.person, stream, msg))
      count += found.flat().length
      // Not until a batch is empty: a busy service appends without end.
      isMore = (batch.at(-1)?.pending ?? 0) > 0
    }
  }
  return count
})

interface Person {
  /** Whether a text is the id, or has the pseudonym in it. */
  readonly isIn: (text: string) => boolean
  /** Whether bytes may name the user: `openid:42` has `openid:4` in it. */
  readonly mayBeIn: (bytes: Uint8Array) => boolean
  readonly pseudonym: string
  /** The id without the policy. */
  readonly login: string
}

const personOf = ({ id, user: pseudonym }: User): Person => {
  // Bodies have the id as JSON writes it, headers as a URI.
  const written = [pseudonym, JSON.stringify(id).slice(1, -1)].map((text) => Buffer.from(text))
  const asUri = encodeURI(id)
  return {
    pseudonym,
    login: id.slice(id.indexOf(":") + 1),
    isIn: (text) => text === id || text === asUri || text.includes(pseudonym),
    mayBeIn: ({ buffer, byteLength, byteOffset }) => {
      const bytes = Buffer.from(buffer, byteOffset, byteLength)
      return written.some((each) => bytes.includes(each))
    }
  }
}

/** Parts and broadcasts of LOG that were found so far. */
interface Reading {
  readonly person: Person
  /** Sequences of parts of broadcasts. */
  readonly parts: Set<number>
  /** Broadcasts that name the user as a recipient, or as one who gets nothing. */
  readonly broadcasts: Set<number>
}

const isWanted = (reading: Reading, stream: string, msg: DirectMessage): boolean => {
  const { broadcasts, parts, person } = reading
  const body = () => bodyOf(msg)
  const isNamed = person.mayBeIn(msg.data) && names(person, body())
  if (stream === streams.log.name) {
    const { seq, subject } = msg
    if (isNamed && subject.startsWith("bellcast.cmd.part.")) parts.add(seq)
    const isDirect = subject.startsWith("bellcast.cmd.broadcast.")
    const isToUser = isDirect && (isNamed || partsIn(body(), parts))
    if (isToUser) broadcasts.add(seq)
    if (isToUser) return true
  }
  return (
    isNamed ||
    person.isIn(msg.subject) ||
    isLogin(person, stream, body()) ||
    broadcasts.has(broadcastOf(msg.subject)) ||
    Object.values(headersIn(msg)).some(person.isIn)
  )
}

/**
 * Whether an entry of the bucket `cache` is a login of the user: it has the name without the
 * policy, so that it may be of a namesake of another policy.
 */
const isLogin = ({ login }: Person, stream: string, body: unknown): body is object => {
  if (stream !== bucketStream("cache") || typeof body !== "object" || body === null) return false
  const { known, user } = body as { known?: { user?: unknown }; user?: unknown }
  return (known?.user ?? user) === login
}

const partsOf = (body: unknown): ReadonlyArray<number> => {
  const { parts } = (typeof body === "object" && body !== null ? body : {}) as { parts?: unknown }
  return Array.isArray(parts) ? parts : []
}

/** Parts are stored before their broadcast. Without any, no body is parsed. */
const partsIn = (body: unknown, parts: ReadonlySet<number>): boolean =>
  parts.size > 0 && partsOf(body).some((seq) => parts.has(seq))

/** The broadcast of the subject of a message about one; 0: of another subject. */
const broadcastOf = (subject: string): number =>
  Number(
    /^bellcast\.(?:evt\.(?:state|rejected|finished\.[^.]+)|plan\.[^.]+)\.(\d+)$/.exec(subject)?.[1]
  ) || 0

/**
 * A message, if it is wanted. Before a broadcast to the user come those of its parts that do not
 * name the user: they may hold its text.
 */
const wantedWith = Effect.fnUntraced(function* (
  nats: Nats["Service"],
  reading: Reading,
  stream: string,
  msg: DirectMessage
) {
  if (!isWanted(reading, stream, msg)) return []
  const { broadcasts } = reading
  const isToUser =
    stream === streams.log.name &&
    (broadcasts.has(msg.seq) || broadcasts.has(broadcastOf(msg.subject)))
  const others = isToUser ? partsOf(bodyOf(msg)).filter((seq) => !reading.parts.has(seq)) : []
  const found = yield* Effect.forEach(others, (from) =>
    attempt(`read ${stream}`, () => readFrom(nats, stream, ">", { from, limit: 1 }))
  )
  // A NATS client may name any message as a part.
  const parts = found.flat().filter(({ subject }) => subject.startsWith("bellcast.cmd.part."))
  return [...parts, msg]
})

const bodyOf = ({ data }: DirectMessage): unknown => {
  const text = textOf(data)
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** But those of NATS. */
const headersIn = ({ headers }: DirectMessage): Readonly<Record<string, string>> => {
  const all = headers()
  if (all === "malformed") return {}
  return Object.fromEntries(
    [...all].flatMap(([name, [value]]) =>
      name.startsWith("Nats-") || value === undefined ? [] : [[name, value] as const]
    )
  )
}

/** Whether a value names the user, in a key or a text at any depth. */
const names = (person: Person, value: unknown): boolean => {
  if (typeof value === "string") return person.isIn(value)
  if (typeof value !== "object" || value === null) return false
  return Object.entries(value).some(([key, inner]) => person.isIn(key) || names(person, inner))
}

const foundIn = (person: Person, stream: string, msg: DirectMessage): Found => {
  const { at, data, seq, subject } = msg
  const headers = headersIn(msg)
  const other = otherIn(person, subject)
  const whole = bodyOf(msg)
  const body = isLogin(person, stream, whole) ? withoutGroups(whole) : withoutOthers(person, whole)
  return {
    stream,
    sequence: seq,
    time: new Date(at).toISOString(),
    subject: other === undefined ? subject : subject.replace(other, "=another"),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    ...(data.length === 0 ? {} : { body: other === undefined ? body : onlyOwn(person, body) })
  }
}

/** A login without its groups, which may be those of a namesake. */
const withoutGroups = (login: object): object => {
  const { groups: _, known: __, ...rest } = login as Record<string, unknown>
  return rest
}

const ofPerson =
  /^bellcast\.(?:cmd\.(?:subscription|registration\.[^.]+|erase)|evt\.erased|look)\.([^.]+)/
const ofEntry = /^\$KV\.[^.]+\.(?:[^.]+\.)?([^.]+)$/

/** The pseudonym of another user whose command, look or entry the message is. */
const otherIn = (person: Person, subject: string): string | undefined => {
  const [, of = ""] = ofPerson.exec(subject) ?? ofEntry.exec(subject) ?? []
  return isUserToken(of) && of !== person.pseudonym ? of : undefined
}

/**
 * Of a message about another user: the times, and members that are this user's name, such as who
 * caused it. A page may have stored the name anywhere in the other's subscription.
 */
const onlyOwn = (person: Person, body: unknown): unknown =>
  Object.fromEntries(
    Object.entries(typeof body === "object" ? (body ?? {}) : {}).filter(
      ([key, value]) =>
        key === "at" || key === "lastModified" || (typeof value === "string" && person.isIn(value))
    )
  )

/** Members that list people: recipients, results of pushes, rights, owners of endpoints. */
const people = new Set([
  ...["users", "except", "except_users", "results"],
  ...["principals", "registrars", "owners", "ended"]
])
/** Members that a client chose. They say the same to everybody who gets them. */
const payloads = new Set(["data", "data_by_locale"])

/** A body, whose lists of people have this one only. */
const withoutOthers = (person: Person, value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map((inner) => withoutOthers(person, inner))
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (payloads.has(key) || typeof inner !== "object" || inner === null) return [key, inner]
      return [key, people.has(key) ? ownOf(person, inner) : withoutOthers(person, inner)]
    })
  )
}

const ownOf = (person: Person, list: object): unknown => {
  const isOwn = (key: string, inner: unknown) => person.isIn(key) || names(person, inner)
  if (Array.isArray(list)) return list.filter((inner) => names(person, inner))
  return Object.fromEntries(Object.entries(list).filter(([key, inner]) => isOwn(key, inner)))
}
