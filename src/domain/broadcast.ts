// A broadcast: its body, its headers, its payload, and the number of shards of its channel. Pure.
import * as Schema from "effect/Schema"
import { canonicalJson } from "#basics/json.ts"
import { isLocale } from "./locale.ts"

/** RFC 8030 section 5.3. */
export const Urgency = Schema.Literals(["very-low", "low", "normal", "high"])
export type Urgency = typeof Urgency.Type

/** RFC 8030 section 5.4: at most 32 characters of the URL-safe base64 alphabet. */
export const Topic = Schema.String.pipe(Schema.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,32}$/u)))

/** 28 days: FCM stores a message no longer. Other push services allow as much or more. */
export const ttlSecondsMax = 2_419_200

/**
 * The TTL of a broadcast without one: a day, in which most browsers are on again. LOG stores none,
 * so each process that reads the broadcast must know the same.
 */
const ttlSecondsDefault = 86_400

/**
 * The shortest life of a broadcast: delivery to all users takes some time, even with a TTL of 0.
 */
export const lifeMillisMin = 10_000

/** When the life of a broadcast is over. `startsAt`: when it was accepted, or starts later. */
export const expiresAtOf = (startsAt: number, ttlSeconds: number): number =>
  startsAt + Math.max(ttlSeconds * 1000, lifeMillisMin)

/** The id of a broadcast, its sequence in LOG, in a text; undefined: the text is no id. */
export const broadcastIdIn = (text: string): number | undefined =>
  /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined

/**
 * RFC 8291 section 4: the plaintext that fits into the 4096-byte body that every push service must
 * accept.
 */
export const payloadBytesMax = 3_993

/**
 * A sequence in a stream. nats-server answers a read of sequence 0 with an error, not with "not
 * found".
 */
export const Sequence = Schema.Int.pipe(Schema.check(Schema.isGreaterThanOrEqualTo(1)))

/**
 * Parts of a broadcast: a gateway cuts the largest request (256 KiB) into 12. A message that names
 * one part a thousand times made each reader of it hold 800 MB.
 */
export const partsMax = 16
/** Sequences of the messages with those parts of a broadcast that do not fit into its own. */
export const Parts = Schema.Array(Sequence).pipe(
  Schema.check(
    Schema.makeFilter(
      (parts) =>
        (parts.length <= partsMax && new Set(parts).size === parts.length) ||
        `Expected at most ${partsMax} parts, each once`
    )
  )
)

const Data = Schema.Record(Schema.String, Schema.Unknown)
const variantsMax = 20
const isDistinct = (locales: ReadonlyArray<string>): boolean =>
  new Set(locales.map((each) => each.toLowerCase())).size === locales.length
/** The language of a reader or of a variant. */
export const Locale = Schema.String.pipe(
  Schema.check(Schema.makeFilter((text) => isLocale(text) || "Must be a language tag (BCP 47)"))
)

/** The payload of a broadcast and its variants, where each fits a schema. */
export const payloadFields = (data: typeof Data) => ({
  data: Schema.optionalKey(data),
  /** For readers of these languages, instead of `data`. */
  data_by_locale: Schema.optionalKey(
    Schema.Record(Schema.String, data).pipe(
      Schema.check(
        Schema.isMaxProperties(variantsMax),
        Schema.isPropertyNames(Locale),
        Schema.makeFilter((variants) => isDistinct(Object.keys(variants)) || "Same language twice")
      )
    )
  )
})

/**
 * The body of a broadcast, over HTTP and over NATS alike. Without `data`, pushes carry no payload.
 */
export const BroadcastBody = Schema.Struct({
  ...payloadFields(Data),
  /**
   * Gateways make dry runs and store none, and store the others as headers. A NATS client that
   * writes one of them into the body wants something else than to send all of it now.
   */
  dry_run: Schema.optionalKey(Schema.Never),
  at: Schema.optionalKey(Schema.Never),
  rate: Schema.optionalKey(Schema.Never),
  pause_when: Schema.optionalKey(Schema.Never)
})
export type BroadcastBody = typeof BroadcastBody.Type

/** Most pushes a second that a broadcast may ask for. */
const rateMax = 100_000
/** Pushes a second of a broadcast: over the whole service, first attempts and retries together. */
export const Rate = Schema.Int.pipe(
  Schema.check(Schema.isBetween({ minimum: 1, maximum: rateMax }))
)

/** Headers of RFC 8030 that a broadcast may have, over HTTP and over NATS. */
const pushHeaderNames = ["TTL", "Urgency", "Topic"] as const
/** Headers of a stored broadcast: over HTTP, the last ones are members of the body. */
export const headerNames = [...pushHeaderNames, "Bellcast-Rate"] as const
type HeaderName = (typeof headerNames)[number]

/** The header of a request with this name, unless it is a member of the body. */
export const isInBody = (name: HeaderName): boolean => name.startsWith("Bellcast-")

/** Returns those headers that a request or message has, unchanged. */
export const givenHeaders = (
  get: (name: HeaderName) => string | undefined
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    headerNames.flatMap((name) => (get(name) === undefined ? [] : [[name, get(name)!]]))
  )

/** The values of these headers. */
export interface BroadcastHeaders {
  readonly ttlSeconds: number
  readonly urgency: Urgency
  readonly topic?: string
  /** See {@link Rate}. */
  readonly rate?: number
}

/** The headers of a stored broadcast for members of the body of its request. */
export const bodyHeaders = ({
  rate
}: {
  readonly rate: number | undefined
}): Readonly<Record<string, string>> =>
  rate === undefined ? {} : { "Bellcast-Rate": String(rate) }

/**
 * Header of a redrive: the id of an earlier broadcast of the channel. The redrive goes only to
 * subscriptions that the earlier broadcast did not reach.
 */
export const redrivesHeader = "Bellcast-Redrives"

/**
 * Header of a redrive of a broadcast whose payload was changed before its start: the sequence of
 * that change.
 */
export const payloadHeader = "Bellcast-Payload"

/** A header that does not follow RFC 8030, and why. */
export interface HeaderError {
  readonly name: HeaderName
  readonly description: string
}

const isUrgency = Schema.is(Urgency)
const isTopic = Schema.is(Topic)

/** The rule of each header, and the text of its error. */
const rules: Readonly<Record<HeaderName, readonly [(value: string) => boolean, string]>> = {
  TTL: [
    (ttl) => /^\d{1,10}$/.test(ttl) && Number(ttl) <= ttlSecondsMax,
    `TTL must be a whole number of seconds from 0 to ${ttlSecondsMax}`
  ],
  Urgency: [isUrgency, `Urgency must be one of ${Urgency.literals.join(", ")}`],
  Topic: [isTopic, "Topic must be 1 to 32 characters of the URL-safe base64 alphabet"],
  "Bellcast-Rate": [
    (rate) => /^[1-9]\d{0,5}$/.test(rate) && Number(rate) <= rateMax,
    `Bellcast-Rate must be a whole number of pushes a second from 1 to ${rateMax}`
  ]
}

/**
 * Reads TTL (seconds), Urgency, Topic and rate; a missing one has its default (normal urgency, no
 * topic, no limit).
 */
export const readHeaders = (
  get: (name: HeaderName) => string | undefined
): { readonly headers: BroadcastHeaders; readonly errors: ReadonlyArray<HeaderError> } => {
  const errors = headerNames.flatMap((name): ReadonlyArray<HeaderError> => {
    const [value, [isValid, description]] = [get(name), rules[name]]
    return value === undefined || isValid(value) ? [] : [{ name, description }]
  })
  const [ttl, urgency, topic, rate] = headerNames.map(get)
  return {
    headers: {
      ttlSeconds: ttl === undefined ? ttlSecondsDefault : Number(ttl),
      urgency: urgency !== undefined && isUrgency(urgency) ? urgency : "normal",
      ...(topic === undefined ? {} : { topic }),
      ...(rate === undefined ? {} : { rate: Number(rate) })
    },
    errors
  }
}

/**
 * Returns the payload of pushes with this data: JSON in UTF-8 with sorted keys and no white space;
 * undefined without data.
 */
export const payloadOf = (data: BroadcastBody["data"]): Uint8Array | undefined =>
  data === undefined || Object.keys(data).length === 0
    ? undefined
    : new TextEncoder().encode(canonicalJson(data))

/**
 * Whether a payload has at most so many bytes. Sorted keys have the same length, and a UTF-16 unit
 * takes at most three bytes.
 */
const isWithin = (data: BroadcastBody["data"], bytesMax: number): boolean => {
  if (data === undefined) return true
  const text = JSON.stringify(data)
  return text.length * 3 <= bytesMax || new TextEncoder().encode(text).length <= bytesMax
}

/** Whether `data` and each of its variants have at most so many bytes as payloads. */
export const fitsInto = (
  { data, data_by_locale = {} }: Pick<BroadcastBody, "data" | "data_by_locale">,
  bytesMax: number
): boolean => [data, ...Object.values(data_by_locale)].every((each) => isWithin(each, bytesMax))

/** Whether each variant of the payload fits into one push. */
export const fitsOnePush = (body: BroadcastBody): boolean => fitsInto(body, payloadBytesMax)

/** The fact that the planner rejected a broadcast. */
export const BroadcastRejected = Schema.Struct({
  broadcast: Schema.Int,
  subject: Schema.String,
  reason: Schema.String,
  at: Schema.Int
})

/**
 * Most registrations of a shard on average. One multi-get returns up to 1024; a larger shard is
 * read in parts. A shard costs about six requests to NATS, so small ones are expensive: measured 25
 * us of CPU per push with 256 shards of 39, 2 us with 16 of 625.
 */
const registrationsPerShard = 1_000

/** Returns the depth of the shards of a channel: it has 16^depth of them. */
export const shardDepth = (registrations: number): number => {
  let depth = 0
  while (depth < 4 && registrations > registrationsPerShard * 16 ** depth) depth++
  return depth
}
