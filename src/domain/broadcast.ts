// A broadcast: its body with the payload and the variants for readers of other languages, and its
// headers, which say how it is sent, when it starts, when it pauses by itself, and who sent it.
// Pure.
import * as Schema from "effect/Schema"
import { canonicalJson } from "#basics/json.ts"

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

/** RFC 5646 section 4.4.1: room for every tag in use. */
const localeBytesMax = 35

/**
 * Whether a text is a language tag such as `de` or `pt-BR`, as Intl takes it: tags of RFC 5646 that
 * are no Unicode locale identifiers, such as `zh-yue` and `i-klingon`, are refused.
 */
export const isLocale = (text: string): boolean => {
  if (text.length > localeBytesMax) return false
  try {
    return Intl.getCanonicalLocales(text).length === 1
  } catch {
    return false
  }
}

/** The language of a reader or of a variant. */
export const Locale = Schema.String.pipe(
  Schema.check(Schema.makeFilter((text) => isLocale(text) || "Must be a language tag (BCP 47)"))
)

/**
 * Lookup of RFC 4647 section 3.4: tries the tag, then the tag without its last part, and so on.
 * `find` is given tags in lower case. Undefined: no tag is found.
 */
export const lookupLocale = <A>(
  locale: string,
  find: (tag: string) => A | undefined
): A | undefined => {
  const parts = locale.toLowerCase().split("-")
  while (parts.length > 0) {
    const found = find(parts.join("-"))
    if (found !== undefined) return found
    parts.pop()
    // A single letter begins what was cut off.
    if (parts.at(-1)?.length === 1) parts.pop()
  }
  return undefined
}

const Data = Schema.Record(Schema.String, Schema.Unknown)
const variantsMax = 20
const isDistinct = (locales: ReadonlyArray<string>): boolean =>
  new Set(locales.map((each) => each.toLowerCase())).size === locales.length

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
  delay_seconds: Schema.optionalKey(Schema.Never),
  rate: Schema.optionalKey(Schema.Never),
  pause_when: Schema.optionalKey(Schema.Never),
  name: Schema.optionalKey(Schema.Never),
  test: Schema.optionalKey(Schema.Never)
})
export type BroadcastBody = typeof BroadcastBody.Type

/** The id of a broadcast, its sequence in LOG, in a text; undefined: the text is no id. */
export const broadcastIdIn = (text: string): number | undefined =>
  /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined

/**
 * RFC 8291 section 4: the plaintext that fits into the 4096-byte body that every push service must
 * accept.
 */
export const payloadBytesMax = 3_993

/**
 * Returns the payload of pushes with this data: JSON in UTF-8 with sorted keys and no white space;
 * undefined without data.
 */
export const payloadOf = (data: BroadcastBody["data"]): Uint8Array | undefined =>
  data === undefined || Object.keys(data).length === 0
    ? undefined
    : new TextEncoder().encode(canonicalJson(data))

/** Whether each variant of the payload fits into one push. */
export const fitsOnePush = (body: BroadcastBody): boolean => fitsInto(body, payloadBytesMax)

/** Whether `data` and each of its variants have at most so many bytes as payloads. */
export const fitsInto = (
  { data, data_by_locale = {} }: Pick<BroadcastBody, "data" | "data_by_locale">,
  bytesMax: number
): boolean => [data, ...Object.values(data_by_locale)].every((each) => isWithin(each, bytesMax))

/**
 * Whether a payload has at most so many bytes. Sorted keys have the same length, and a UTF-16 unit
 * takes at most three bytes.
 */
const isWithin = (data: BroadcastBody["data"], bytesMax: number): boolean => {
  if (data === undefined) return true
  const text = JSON.stringify(data)
  return text.length * 3 <= bytesMax || new TextEncoder().encode(text).length <= bytesMax
}

/** RFC 8030 section 5.3. */
export const Urgency = Schema.Literals(["very-low", "low", "normal", "high"])
export type Urgency = typeof Urgency.Type

/** RFC 8030 section 5.4: at most 32 characters of the URL-safe base64 alphabet. */
const Topic = Schema.String.pipe(Schema.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,32}$/u)))

/** 28 days: FCM stores a message no longer. Other push services allow as much or more. */
export const ttlSecondsMax = 2_419_200

/**
 * The TTL of a broadcast without one: a day, in which most browsers are on again. LOG stores none,
 * so each process that reads the broadcast must know the same.
 */
export const ttlSecondsDefault = 86_400

/**
 * The shortest life of a broadcast: delivery to all users takes some time, even with a TTL of 0.
 */
export const lifeMillisMin = 10_000

/** When the life of a broadcast is over. `startsAt`: when it was accepted, or starts later. */
export const expiresAtOf = (startsAt: number, ttlSeconds: number): number =>
  startsAt + Math.max(ttlSeconds * 1000, lifeMillisMin)

/** Most pushes a second that a broadcast may ask for. */
const rateMax = 100_000
/** Pushes a second of a broadcast: over the whole service, first attempts and retries together. */
export const Rate = Schema.Int.pipe(
  Schema.check(Schema.isBetween({ minimum: 1, maximum: rateMax }))
)

const nameCharsMax = 200
const nameRule = `1 to ${nameCharsMax} characters without control characters`
/** The name of a broadcast for those who send it. Nobody else sees it: it is in no push. */
export const Name = Schema.String.pipe(
  Schema.check(
    Schema.isMinLength(1),
    Schema.isMaxLength(nameCharsMax),
    // A lone surrogate cannot be percent-encoded. A control character would break a line of a list.
    Schema.makeFilter((name) => !/[\p{Cc}\p{Cs}]/u.test(name) || `Expected ${nameRule}`)
  )
)
const isName = Schema.is(Name)

/** Most users whom a test names: those who look at it before it goes to readers. */
export const testUsersMax = 20

/** Headers of RFC 8030 that a broadcast may have, over HTTP and over NATS. */
const pushHeaderNames = ["TTL", "Urgency", "Topic"] as const
/** Headers of a stored broadcast: over HTTP, the last ones are members of the body. */
export const headerNames = [
  ...pushHeaderNames,
  "Bellcast-Rate",
  "Bellcast-Name",
  "Bellcast-Test"
] as const
type HeaderName = (typeof headerNames)[number]

/** The values of these headers. */
interface BroadcastHeaders {
  readonly ttlSeconds: number
  readonly urgency: Urgency
  readonly topic?: string
  /** See {@link Rate}. */
  readonly rate?: number
  /** See {@link Name}. */
  readonly name?: string
  /** Lists leave it out. Absent: it is for readers. */
  readonly test?: true
}

/** A header that does not follow RFC 8030, and why. */
interface HeaderError {
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
  ],
  "Bellcast-Name": [
    (name) => isName(decodedName(name)),
    `Bellcast-Name must be ${nameRule}, percent-encoded or in UTF-8`
  ],
  "Bellcast-Test": [(test) => test === "true", "Bellcast-Test must be true"]
}

/** The name in a header. A text that is not percent-encoded stands for itself. */
const decodedName = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/**
 * Reads TTL (seconds), Urgency, Topic, rate, name and test; a missing one has its default (normal
 * urgency, no topic, no limit, no name, no test).
 */
export const readHeaders = (
  get: (name: HeaderName) => string | undefined
): { readonly headers: BroadcastHeaders; readonly errors: ReadonlyArray<HeaderError> } => {
  const errors = headerNames.flatMap((name): ReadonlyArray<HeaderError> => {
    const [value, [isValid, description]] = [get(name), rules[name]]
    return value === undefined || isValid(value) ? [] : [{ name, description }]
  })
  const [ttl, urgency, topic, rate, name, test] = headerNames.map(get)
  return {
    headers: {
      ttlSeconds: ttl === undefined ? ttlSecondsDefault : Number(ttl),
      urgency: urgency !== undefined && isUrgency(urgency) ? urgency : "normal",
      ...(topic === undefined || !isTopic(topic) ? {} : { topic }),
      ...(rate === undefined ? {} : { rate: Number(rate) }),
      ...(name === undefined || !isName(decodedName(name)) ? {} : { name: decodedName(name) }),
      ...(test === "true" ? { test: true } : {})
    },
    errors
  }
}

/** Returns those headers that a request or message has, unchanged. */
export const givenHeaders = (
  get: (name: HeaderName) => string | undefined
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    headerNames.flatMap((name) => (get(name) === undefined ? [] : [[name, get(name)!]]))
  )

/** The header of a request with this name, unless it is a member of the body. */
export const isInBody = (name: HeaderName): boolean => name.startsWith("Bellcast-")

/** The headers of a stored broadcast for members of the body of its request. */
export const bodyHeaders = ({
  name,
  rate,
  test
}: {
  readonly rate: number | undefined
  readonly name?: string | undefined
  readonly test?: boolean | undefined
}): Readonly<Record<string, string>> => ({
  ...(rate === undefined ? {} : { "Bellcast-Rate": String(rate) }),
  ...(name === undefined ? {} : { "Bellcast-Name": encodeURIComponent(name) }),
  ...(test === true ? { "Bellcast-Test": "true" } : {})
})

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

/** The share of failed pushes that pauses a broadcast, as publishers write it. */
export const PauseWhen = Schema.Struct({
  failed_share: Schema.Finite.pipe(
    Schema.check(Schema.isGreaterThan(0), Schema.isLessThanOrEqualTo(1))
  )
})
export type PauseWhen = typeof PauseWhen.Type

/** Header of a broadcast that may pause by itself: `pause_when` in the body of a request. */
export const pauseWhenHeader = "Bellcast-Pause-When"

export const pauseWhenText = ({ failed_share }: PauseWhen): string => `failed_share=${failed_share}`

const isPauseWhen = Schema.is(PauseWhen)

/** Undefined: the text is no value of the header. */
export const pauseWhenOf = (text: string): PauseWhen | undefined => {
  const pauseWhen = { failed_share: Number(/^failed_share=([\d.e-]{1,24})$/.exec(text)?.[1]) }
  return isPauseWhen(pauseWhen) ? pauseWhen : undefined
}

export const pauseWhenError = `${pauseWhenHeader} must be failed_share= and a share, above 0 to 1`

/** The gateway, as the source of a message. */
export const gatewaySource = "rest"

/** Sources that are Bellcast itself: the gateway checks who may send to whom. */
const ownSources = [gatewaySource, "redrive"]
export const isOwnSource = (source: string): boolean => ownSources.includes(source)

/**
 * Header of a broadcast by HTTP: the id of its publisher, percent-encoded. The gateway writes it; a
 * NATS client may write anything there, so it counts only where the source is `rest`.
 */
const publisherHeader = "Bellcast-Publisher"

/** The header that names the publisher. */
export const publisherHeaders = (id: string): Readonly<Record<string, string>> => ({
  [publisherHeader]: encodeURI(id)
})

type Header = (name: string) => string | undefined

/**
 * The publisher of a broadcast: the id of a user, or `nats:<source>` for a NATS client, whose
 * permissions bind it to its source; of one that was sent again, the operator. Undefined without
 * the header.
 */
export const publisherOf = (source: string, header: Header): string | undefined => {
  if (source !== gatewaySource) return redrivenBy(source, header) ?? `nats:${source}`
  return idIn(header(publisherHeader))
}

/** The operator who sent a broadcast again. Undefined of other broadcasts. */
export const redrivenBy = (source: string, header: Header): string | undefined =>
  source === "redrive" ? callerIn(header) : undefined

/**
 * Header of messages that somebody causes for another user: the id of the operator or the site's
 * server, percent-encoded, or `operator` for a command.
 */
const byHeader = "Bellcast-By"
export const byHeaders = (id: string): Readonly<Record<string, string>> => ({
  [byHeader]: encodeURI(id)
})

/** The caller that a message names. Undefined: the user caused it, or the service. */
export const callerIn = (header: Header): string | undefined => idIn(header(byHeader))

/** The id in one of these headers. */
const idIn = (text: string | undefined): string | undefined => {
  try {
    return text === undefined ? undefined : decodeURI(text)
  } catch {
    return text
  }
}
