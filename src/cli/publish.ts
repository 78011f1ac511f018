// `bellcast publish DATA --channel CHANNEL`: publishes by a request on NATS, so that a gateway
// decides as it does for every other publisher.
import { randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import { text } from "node:stream/consumers"
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { isObject, jsonObjectOf, parseWhole } from "#basics/json.ts"
import { pauseWhenOf, payloadBytesMax, Urgency } from "#domain/broadcast.ts"
import type { Reach } from "#gateway/broadcasts/dry-run.ts"
import { Accepted, bodiesMax, Counted } from "#gateway/broadcasts/publish.ts"
import { bodyBytesMax } from "#gateway/http/request.ts"
import { mayBeSent, requestApi } from "#nats/connection/micro.ts"
import { subjects } from "#streams/subjects.ts"
import { printable, printableJson } from "#telemetry/redaction.ts"
import { natsFlags, onNats } from "./nats/on-nats.ts"
import {
  named,
  number,
  objectFlag,
  onOff,
  optional,
  several,
  sourceFlag,
  timeFlag
} from "./terminal/input.ts"
import { counted, failed, note, shellWord } from "./terminal/output.ts"

const flags = {
  data: Argument.String("data").pipe(
    Argument.withDescription("The data of the pushes, a JSON object; unset: --file, or stdin"),
    Argument.optional
  ),
  file: optional(named("file", "FILE"), "A file with the data"),
  dataByLocale: optional(named("data-by-locale", "JSON"), "Data by language, a JSON object"),
  channels: several(named("channel", "CHANNEL"), "To everybody who is registered to this channel"),
  users: several(named("user", "USER"), "To this user: <policy>:<id> or <policy>:<mail address>"),
  exceptUsers: several(named("except-user", "USER"), "Not to this user"),
  ttl: optional(
    number("ttl", "SECONDS"),
    "How long push services keep it, in seconds; unset: a day"
  ),
  urgency: optional(Flag.Literals("urgency", Urgency.literals), "Unset: normal"),
  topic: optional(named("topic", "TOPIC"), "Replaces pushes with this topic that wait"),
  at: timeFlag("at", "When it starts, at most 30 days ahead; unset: at once", "to come").pipe(
    Flag.optional
  ),
  delay: optional(
    number("delay", "SECONDS"),
    "Starts so many seconds after it is stored, 1 to 3,600: time to take it back"
  ),
  rate: optional(number("rate", "N"), "Pushes a second, from 1 to 100,000; unset: no limit"),
  pauseWhen: named("pause-when", "CONDITION").pipe(
    Flag.withDescription("Pauses by itself when this share of the pushes failed: failed_share=0.2"),
    Flag.filterMap(
      (text) => Option.fromUndefinedOr(pauseWhenOf(text)),
      () => "Expected failed_share= and a share, above 0 to 1"
    ),
    Flag.optional
  ),
  name: optional(named("name", "NAME"), "Its name for those who send it: lists show it, no push"),
  test: onOff("test", "A test: to 20 users at most, no channel; lists leave it out"),
  key: optional(
    named("key", "KEY"),
    "Idempotency-Key: repeated, it is the same broadcast; unset: a new one"
  ),
  source: sourceFlag,
  dryRun: onOff("dry-run", "Only count whom it would reach"),
  json: objectFlag,
  ...natsFlags
}

type Given = Command.Command.Config.Infer<typeof flags>

/** The text of the data: the argument, the file, or standard input. */
const textOf = Effect.fnUntraced(function* ({ data, file }: Given) {
  if (Option.isSome(data) && Option.isSome(file))
    return yield* failed("give the data as an argument or as --file, not both")
  if (Option.isSome(data)) return data.value
  if (Option.isSome(file))
    return yield* Effect.try({
      try: () => readFileSync(file.value, "utf8"),
      catch: (error) =>
        failed(`${file.value} cannot be read (${(error as NodeJS.ErrnoException).code})`)
    })
  if (process.stdin.isTTY) return yield* failed("give the data: a JSON object, or --file FILE")
  return yield* Effect.promise(() => text(process.stdin))
})

const objectIn = Effect.fnUntraced(function* (json: string, name: string) {
  const parsed = parseWhole(json)
  if (typeof parsed !== "string" && "loss" in parsed)
    return yield* failed(`${name} cannot be sent as it is: ${printable(parsed.loss)}`)
  return typeof parsed !== "string" && isObject(parsed.json)
    ? parsed.json
    : yield* failed(`${name} is no JSON object`)
})

/** The key by which a repeated request is the same broadcast. */
const keyOf = ({ dryRun, key }: Given): Option.Option<string> =>
  dryRun ? Option.none() : Option.orElseSome(key, () => randomUUID())

type Headers = Readonly<Record<string, string>>

const headersOf = ({ topic, ttl, urgency }: Given, key: Option.Option<string>): Headers => {
  const given = { TTL: ttl, Urgency: urgency, Topic: topic, "Idempotency-Key": key }
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) =>
      Option.isSome<unknown>(value) ? [[name, String(value.value)]] : []
    )
  )
}

/** The operation and its body. A broadcast to one channel alone is listed with the channel. */
const requestOf = Effect.fnUntraced(function* (given: Given) {
  const { at, channels, dataByLocale, delay, dryRun, exceptUsers, pauseWhen, rate, users } = given
  const { name, test } = given
  if (test && channels.length > 0)
    return yield* failed("a test goes to users alone: --user USER, without --channel")
  if (channels.length + users.length === 0)
    return yield* failed("name the recipients: --channel CHANNEL or --user USER")
  const body = {
    data: yield* objectIn(yield* textOf(given), "the data"),
    ...(Option.isSome(dataByLocale) && {
      data_by_locale: yield* objectIn(dataByLocale.value, "--data-by-locale")
    }),
    ...(Option.isSome(at) && { at: at.value.toISOString() }),
    ...(Option.isSome(delay) && { delay_seconds: delay.value }),
    ...(Option.isSome(rate) && { rate: rate.value }),
    ...(Option.isSome(pauseWhen) && { pause_when: pauseWhen.value }),
    ...(Option.isSome(name) && { name: name.value }),
    ...(test && { test: true }),
    ...(dryRun && { dry_run: true })
  }
  const [channel, ...others] = channels
  return channel !== undefined && others.length + users.length + exceptUsers.length === 0
    ? ({ operation: "publish-channel", body: { ...body, channel } } as const)
    : ({
        operation: "publish",
        body: { ...body, to: { channels, users, except_users: exceptUsers } }
      } as const)
})

/** Bytes of a body at most, as gateways read it. */
const bytesMax = { publish: bodiesMax * bodyBytesMax, "publish-channel": bodyBytesMax }

/** Fails where the request has more bytes than a gateway takes. */
const demandFits = Effect.fnUntraced(function* ({
  body,
  operation
}: Effect.Success<ReturnType<typeof requestOf>>) {
  const bytes = Buffer.byteLength(JSON.stringify(body))
  const max = bytesMax[operation]
  if (bytes > max)
    return yield* failed(
      `the request is too large: it has ${bytes} bytes of JSON, a gateway takes ${max} ` +
        `at most, and a push ${payloadBytesMax} of data`
    )
})

const ErrorBody = Schema.Struct({ error_code: Schema.String, message: Schema.String })

/** The commands that give a source the rights that a broadcast needs. */
const grantsFor = ({ channels, exceptUsers, source, users }: Given): ReadonlyArray<string> => {
  const grants = channels.map(
    (channel) => `  bellcast permissions grant ${shellWord(channel)} nats:${source}`
  )
  return [
    `nats:${source} lacks a right; an operator gives it with`,
    ...grants,
    ...(users.length + exceptUsers.length === 0
      ? []
      : [`  the setting BELLCAST_USER_WRITE_PRINCIPALS, which must name nats:${source}`])
  ]
}

/** Says how to repeat a request without a second broadcast. */
const repeatText = (key: string): string =>
  "the broadcast may be accepted all the same. Repeat it within an hour, with " +
  `--key ${shellWord(key)}: then nobody gets it twice`

const refusal = (status: number, body: unknown, given: Given, key: Option.Option<string>) => {
  const { error_code, message } = Schema.is(ErrorBody)(body)
    ? body
    : { error_code: "unknown", message: "no reason" }
  const said = `the gateway refused it (${status}, ${error_code}): ${message}`
  const repeat = status === 503 && Option.isSome(key) ? [repeatText(key.value)] : []
  return failed([said, ...(status === 403 ? grantsFor(given) : []), ...repeat].join("\n"))
}

const reachLine = ({ browsers, estimated, people }: typeof Reach.Type): string =>
  `would go to ${estimated ? "about " : ""}${counted(browsers, "browser")} of ` +
  counted(people, "person", "people")

/** A time that is over means now: the gateway refuses one that is over for an hour. */
const startText = ({ at, delay }: Given): string => {
  if (Option.isSome(delay))
    return `, and starts ${delay.value} s later unless \`bellcast broadcast cancel\` is faster`
  if (Option.isNone(at)) return ""
  return `, and starts ${at.value.getTime() > Date.now() ? `at ${at.value.toISOString()}` : "now"}`
}

const publish = Effect.fnUntraced(function* (given: Given) {
  const { json, source } = given
  const request = yield* requestOf(given)
  yield* demandFits(request)
  const { body, operation } = request
  const key = keyOf(given)
  const reply = yield* requestApi(
    subjects.api(source, operation),
    body,
    headersOf(given, key)
  ).pipe(
    Effect.onError((cause) =>
      Option.isSome(key) && mayBeSent(cause)
        ? note(`there is no response: ${repeatText(key.value)}`)
        : Effect.void
    )
  )
  if (reply === undefined)
    return yield* failed("no gateway responds: a process with the role gateway has to run")
  const got = jsonObjectOf(reply.text)
  if (reply.status > 0) return yield* refusal(reply.status, got, given, key)
  if (json) return yield* Console.log(printableJson(got))
  if (Schema.is(Counted)(got)) yield* Console.log(reachLine(got.data))
  else if (Schema.is(Accepted)(got))
    yield* Console.log(`broadcast ${printable(got.id)} is accepted${startText(given)}`)
  else return yield* failed("the gateway responded with another form")
  for (const warning of got.warnings) yield* note(warning)
})

/** Safari shows this shape without a worker. */
const hello =
  '{"web_push": 8030, "notification": {"title": "Hello", "navigate": "https://example.org/"}}'

/** The verb. */
export const publishCommand = Command.make("publish", flags, (given) =>
  publish(given).pipe(onNats(given, { isOfPublisher: true }))
).pipe(
  Command.withDescription("Publish a broadcast to channels and to users"),
  Command.withExamples([
    {
      command: "bellcast publish --channel news --file hello.json --ttl 3600",
      description: "To a channel, for an hour"
    },
    {
      command: `bellcast publish '${hello}' --channel news --user openid:anna --dry-run`,
      description: "Count whom it would reach"
    }
  ])
)
