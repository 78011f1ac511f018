// POST /channels/{id} and POST /broadcasts: a broadcast to one channel, or to several channels and
// to users, each browser once. The response is 202 when JetStream has stored the message; other
// stages do the rest. With `dry_run` nothing is stored: the response counts whom it would reach.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { JoinedChannels } from "#broadcasts/joined.ts"
import { PushData, pushExample } from "#browser/push.ts"
import {
  type BroadcastBody,
  bodyHeaders,
  fitsInto,
  givenHeaders,
  isInBody,
  Name,
  PauseWhen,
  pauseWhenHeader,
  pauseWhenText,
  payloadFields,
  Rate,
  readHeaders,
  testUsersMax
} from "#domain/broadcast.ts"
import { DelaySeconds, delayHeader, startError, startHeader } from "#domain/broadcast-start.ts"
import { channelsMax, type Recipients, usersMax } from "#domain/recipients.ts"
import { channelToken, decodeTokens } from "#streams/tokens.ts"
import { Acknowledgement, accepted } from "../channels/registration.ts"
import { type ApiRequest, bodyBytesMax, type Call, readBody } from "../http/request.ts"
import { type ApiResponse, type ErrorDetail, errorIn, ok, refuse } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { recipients, userIdFault } from "../named-user.ts"
import { operation } from "../operation.ts"
import { channelIdOf, invalidChannel, isChannelId, maySend } from "../rights.ts"
import { dryRun, Reach } from "./dry-run.ts"
import { type Broadcast, storeBroadcast } from "./store.ts"

/** 256 KiB: users, channels and variants together are at most so many bytes. */
export const bodiesMax = 16

/** The fields of a body that publishes. */
export const publishFields = {
  ...payloadFields(PushData),
  /** For those who send it: it is in no push. */
  name: Schema.optionalKey(Name),
  /** A time of RFC 3339: the broadcast starts then. */
  at: Schema.optionalKey(Schema.String),
  /** The broadcast starts so many seconds after it was stored. */
  delay_seconds: Schema.optionalKey(DelaySeconds),
  /** The broadcast pauses by itself when so many of its attempted pushes have failed. */
  pause_when: Schema.optionalKey(PauseWhen),
  /** Only count whom the broadcast would reach. */
  dry_run: Schema.optionalKey(Schema.Boolean),
  /** Pushes a second. */
  rate: Schema.optionalKey(Rate)
}

const ChannelBody = Schema.Struct(publishFields)
type Published = typeof ChannelBody.Type & { readonly test?: boolean }
const decodeChannelBody = readBody(ChannelBody)

const texts = (max: number) =>
  Schema.optionalKey(Schema.Array(Schema.String).pipe(Schema.check(Schema.isMaxLength(max))))

const To = Schema.Struct({
  channels: texts(channelsMax),
  users: texts(usersMax),
  except_users: texts(usersMax)
})
const DirectBody = Schema.Struct({
  ...publishFields,
  to: To,
  /** Lists leave it out. It names users alone, and few. */
  test: Schema.optionalKey(Schema.Boolean)
})
const decodeDirectBody = readBody(DirectBody)

export const Accepted = Schema.Struct({
  ...Acknowledgement.fields,
  id: Schema.String,
  /** Absent on NATS, where there is no address. */
  url: Schema.optionalKey(Schema.String),
  warnings: Schema.Array(Schema.String)
}).annotate({ identifier: "AcceptedBroadcast" })

/** The body of the response to a dry run. */
export const Counted = Schema.Struct({
  data: Reach,
  warnings: Schema.Array(Schema.String)
}).annotate({ identifier: "DryRun" })

/** The common part of the descriptions. */
const publishDoc = {
  parameters: ["broadcast"],
  responses: { 200: Counted, 202: Accepted },
  errors: [400, 403, 413, 415, 429, 507]
}

/** A broadcast to one channel. */
export const broadcastPost = operation({
  access: "publisher",
  takesJson: "withBody",
  exposes: ["Location"],
  read: Effect.fnUntraced(function* ({ request }, errors) {
    const given = readGiven(request, errors)
    const body = (yield* decodeChannelBody(request, errors)).value ?? {}
    return { ...(yield* withOptions(given, body, errors)), body }
  }),
  run: Effect.fnUntraced(function* (input, call) {
    const id = yield* channelIdOf(call.params)
    if (isTooLargeWritten(input.body)) return yield* refuse("body-too-large")
    const to = { channels: [channelToken(id)], users: [], except: [] }
    const path = `/channels/${encodeURIComponent(id)}`
    return yield* publish({ ...input, to, isPlain: true }, path, call)
  }),
  doc: {
    summary: "Broadcast to everybody who is registered to a channel",
    ...publishDoc,
    body: ChannelBody,
    bodyExample: pushExample
  }
})

/** Reads the request of a broadcast to several channels and to users. */
export const readDirect = Effect.fnUntraced(function* (
  request: ApiRequest,
  errors: Array<ErrorDetail>
) {
  const given = readGiven(request, errors)
  const { value } = yield* decodeDirectBody(request, errors, { times: bodiesMax })
  // With another error, nothing of the body is used.
  const body = value ?? { to: {} }
  if (value !== undefined) yield* checkRecipients(value, errors)
  return { ...(yield* withOptions(given, body, errors)), body }
})

/** Publishes what was read. `draft`: the form of a draft that it is. */
export const publishDirect = Effect.fnUntraced(function* (
  { body: { to: named, ...body }, ...input }: Effect.Success<ReturnType<typeof readDirect>>,
  call: Call,
  draft?: Broadcast["draft"]
) {
  const { channels = [], except_users = [], users = [] } = named
  const namesUsers = users.length + except_users.length > 0
  if (!(yield* maySend(call.caller!, channels, namesUsers))) return yield* refuse("forbidden")
  const to = yield* tokensOfRecipients(named)
  const given = draft === undefined ? input : { ...input, key: undefined, draft }
  return yield* publish({ ...given, to, body, isPlain: false }, "", call)
})

/** A broadcast to several channels and to users. */
export const directPost = operation({
  access: "principal",
  takesJson: "always",
  exposes: ["Location"],
  read: ({ request }, errors) => readDirect(request, errors),
  run: (input, call) => publishDirect(input, call),
  doc: {
    summary: "Broadcast to several channels and to users, each browser once",
    ...publishDoc,
    body: DirectBody,
    bodyExample: { ...pushExample, to: { channels: ["news"] } },
    bodyRequired: true
  }
})

/** Stores a broadcast, or counts whom it would reach. `path`: that of the channel, if it is one. */
const publish = Effect.fnUntraced(function* (
  {
    body: { data, data_by_locale, dry_run },
    ...given
  }: Omit<Broadcast, "body"> & { body: Published },
  path: string,
  call: Call
) {
  const { to } = given
  const body = {
    ...(data === undefined ? {} : { data }),
    ...(data_by_locale === undefined ? {} : { data_by_locale })
  }
  if (dry_run === true) {
    const reach = yield* dryRun(to, body, call)
    const unjoined = yield* unjoinedOf(to.channels)
    const data = unjoined.length === 0 ? reach : { ...reach, unjoined_channels: unjoined }
    const warnings = [...payloadWarnings(body), ...unjoined.map(unjoinedWarning)]
    return ok({ data, warnings } satisfies typeof Counted.Type, noStore)
  }
  const broadcast = yield* storeBroadcast({ ...given, body }, call.caller!)
  const warnings = (yield* unjoinedOf(to.channels)).map(unjoinedWarning)
  return acceptedAt(path, broadcast, body, call, warnings)
})

/** The 202 of a broadcast that is below `path`. */
export const acceptedAt = (
  path: string,
  broadcast: number,
  body: BroadcastBody,
  { request, rootUrl }: Pick<Call, "request" | "rootUrl">,
  warnings: ReadonlyArray<string> = []
): ApiResponse => {
  const url = `${rootUrl}${path}/broadcasts/${broadcast}`
  const data: typeof Accepted.Type = {
    code: 202,
    message: "Accepted",
    id: String(broadcast),
    ...(request.source === undefined ? { url } : {}),
    warnings: [...payloadWarnings(body), ...warnings]
  }
  return { ...accepted, body: data, broadcast, headers: { Location: url } }
}

/** The 202 of a broadcast that was stored before, to these channels. */
export const acceptedBefore = (
  broadcast: number,
  { body, to }: Pick<Broadcast, "body" | "to">,
  call: Pick<Call, "request" | "rootUrl">
) =>
  Effect.map(unjoinedOf(to.channels), (unjoined) =>
    acceptedAt("", broadcast, body, call, unjoined.map(unjoinedWarning))
  )

/** The names of those of these channels that nobody is registered to. */
const unjoinedOf = Effect.fnUntraced(function* (channels: Recipients["channels"]) {
  return decodeTokens(yield* (yield* JoinedChannels).without(channels))
})

const unjoinedWarning = (channel: string) => `Nobody is registered to the channel ${channel}`

/**
 * Bytes of a payload that Firefox on Android takes. Mozilla's push service sends it on to Android
 * by FCM as base64 in at most 4096 bytes of JSON; senders that know this pad to 2,820.
 */
const androidBytesMax = 2_820
const androidWarning =
  `A payload of more than ${androidBytesMax} bytes: ` +
  "Mozilla's push service may refuse it for Firefox on Android"

const payloadWarnings = (body: BroadcastBody): ReadonlyArray<string> =>
  fitsInto(body, androidBytesMax) ? [] : [androidWarning]

/** The headers of a request that publishes. */
type Given = Pick<Broadcast, "headers" | "key">

/** Adds what is wrong with the headers to `errors`. */
const readGiven = (request: ApiRequest, errors: Array<ErrorDetail>): Given => {
  const given = (name: Parameters<typeof isInBody>[0]) =>
    isInBody(name) ? undefined : request.headers[name.toLowerCase()]
  for (const error of readHeaders(given).errors) errors.push({ location: "header", ...error })
  const key = request.headers["idempotency-key"]
  if (key !== undefined && !/^[\x20-\x7e]{1,255}$/.test(key)) {
    errors.push(
      errorIn(
        "header",
        "Idempotency-Key",
        "Idempotency-Key must be 1 to 255 printable ASCII characters"
      )
    )
  }
  return { headers: givenHeaders(given), key }
}

type Options = Pick<Published, "at" | "delay_seconds" | "name" | "pause_when" | "rate" | "test">

/**
 * Adds the members of a body that are stored as headers to these, and what is wrong with the start
 * to `errors`. `path`: that of the members in the body.
 */
export const withOptions = Effect.fnUntraced(function* (
  given: Given,
  { at, delay_seconds, name, pause_when, rate, test }: Options,
  errors: Array<ErrorDetail>,
  path = ""
) {
  const headers = {
    ...given.headers,
    ...bodyHeaders({ name, rate, test }),
    ...(delay_seconds === undefined ? {} : { [delayHeader]: String(delay_seconds) }),
    ...(pause_when === undefined ? {} : { [pauseWhenHeader]: pauseWhenText(pause_when) })
  }
  if (at === undefined) return { ...given, headers }
  const invalid = (name: string, error: string) =>
    errors.push(errorIn("body", path + name, `Invalid value for ${path}${name}: ${error}`))
  const error = startError(at, yield* Clock.currentTimeMillis)
  if (error !== undefined) invalid("at", error)
  if (delay_seconds !== undefined) invalid("delay_seconds", "at says when it starts already")
  return { ...given, headers: { ...headers, [startHeader]: at } }
})

/** Adds the names of `to` that name nobody to `errors`, and those to whom no test goes. */
const checkRecipients = Effect.fnUntraced(function* (
  { test, to: { channels = [], except_users = [], users = [] } }: typeof DirectBody.Type,
  errors: Array<ErrorDetail>
) {
  const { isRecipient } = yield* recipients
  if (test === true && channels.length > 0)
    errors.push(inBody("to.channels", "A test goes to users alone"))
  if (test === true && users.length > testUsersMax)
    errors.push(inBody("to.users", `A test goes to at most ${testUsersMax} users`))
  if (channels.length + users.length === 0) errors.push(inBody("to", "Expected channels or users"))
  for (const [i, id] of channels.entries())
    if (!isChannelId(id)) errors.push(inBody(`to.channels.${i}`, invalidChannel))
  for (const [name, ids] of Object.entries({ except_users, users }))
    for (const [i, id] of ids.entries())
      if (!isRecipient(id)) errors.push(inBody(`to.${name}.${i}`, userIdFault))
})

/** The recipients, once it is known that the caller may name them: 2,000 pseudonyms take 37 ms. */
const tokensOfRecipients = Effect.fnUntraced(function* ({
  channels = [],
  except_users = [],
  users = []
}: typeof To.Type) {
  const { recipientOf } = yield* recipients
  const tokensOf = (ids: ReadonlyArray<string>) =>
    new Set(ids.flatMap((id) => recipientOf(id)?.user ?? []))
  const except = tokensOf(except_users)
  return {
    channels: sorted(channels.map(channelToken)),
    users: sorted([...tokensOf(users)].filter((user) => !except.has(user))),
    // The excepted users of a broadcast to users alone are left out of `users` already.
    except: channels.length === 0 ? [] : sorted(except)
  }
})

/** Sorted and without duplicates: the same recipients are the same broadcast. */
const sorted = <T extends string>(tokens: Iterable<T>): ReadonlyArray<T> =>
  [...new Set(tokens)].sort()

const inBody = (name: string, description: string) => errorIn("body", name, description)

/**
 * Whether the payload of a broadcast to one channel is larger as JSON writes it than a body may be:
 * of 1e20, 4 bytes of a body, it makes 21. Then it might not fit into a message of LOG.
 */
export const isTooLargeWritten = ({
  data,
  data_by_locale
}: Pick<BroadcastBody, "data" | "data_by_locale">): boolean =>
  Buffer.byteLength(JSON.stringify({ data, data_by_locale })) > bodyBytesMax
