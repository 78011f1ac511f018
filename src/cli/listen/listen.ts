// `bellcast listen CHANNEL`: acts as a browser. Subscribes and registers through the HTTP API,
// prints every push decrypted, and on Ctrl-C removes registration and subscription.
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import * as Config from "effect/Config"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import { settings, urlDefault } from "#config"
import { apiAddressIn, folderAt } from "#embedded/folder.ts"
import { printable, printableJson } from "#telemetry/redaction.ts"
import { argument, jsonFlag, named, number, optional } from "../terminal/input.ts"
import { note, noted } from "../terminal/output.ts"
import { type ApiError, foreign, makeApi } from "./api-client.ts"
import { type Arrived, openPushEndpoint } from "./push-endpoint.ts"

/** Longest time for removing: Ctrl-C must not hang if the service has gone. */
const removalTimeout = "3 seconds"

const Root = Schema.Struct({
  capabilities: Schema.optionalKey(
    Schema.Struct({
      webpush: Schema.optionalKey(
        Schema.Struct({ vapid_public_key: Schema.optionalKey(Schema.String) })
      )
    })
  )
})
const Subscribed = Schema.Struct({ data: Schema.Struct({ id: Schema.String }) })
const Published = Schema.fromJsonString(
  Schema.Struct({
    published_at: Schema.optionalKey(Schema.Finite),
    last_modified: Schema.optionalKey(Schema.Finite)
  })
)

/**
 * Milliseconds since publishing, if the payload is a JSON object with the time in it. A push has no
 * time of its own.
 */
export const elapsedMillis = ({ payload, receivedAtMillis }: Arrived): number | undefined => {
  const { published_at, last_modified } = Option.getOrElse(
    Schema.decodeOption(Published)(payload),
    (): typeof Published.Type => ({})
  )
  const publishedAtMillis = published_at ?? last_modified
  return publishedAtMillis === undefined ? undefined : receivedAtMillis - publishedAtMillis
}

const lineOf = (push: Arrived): string => {
  const elapsed = elapsedMillis(push)
  const after = elapsed === undefined ? "" : `  after ${elapsed} ms`
  const shown = push.payload === "" ? "(no payload)" : printable(push.payload)
  return `${new Date(push.receivedAtMillis).toISOString()}${after}  ${shown}`
}

const jsonOf = (channel: string, push: Arrived): string => {
  const { payload, receivedAtMillis } = push
  return printableJson({
    event: "push",
    channel,
    payload,
    receivedAtMillis,
    elapsedMillis: elapsedMillis(push)
  })
}

export interface ListenOptions {
  readonly channel: string
  readonly url: string
  readonly authorization: string
  /** Return after this many pushes. */
  readonly count: Option.Option<number>
  /** Print JSON lines. */
  readonly json: boolean
}

const removing = (what: string, removal: Effect.Effect<unknown, ApiError>) =>
  removal.pipe(
    Effect.timeout(removalTimeout),
    Effect.catch((error) => note(`${what} could not be removed: ${error.message}`))
  )

/**
 * Runs until `count` pushes have been printed, or for ever. Removes registration and subscription
 * at the end, also after an error of the API.
 */
export const listen = Effect.fn("Cli.listen")(function* ({
  channel,
  url,
  authorization,
  count,
  json
}: ListenOptions) {
  const { call, whileStarting } = yield* makeApi({ url, authorization })
  const root = yield* whileStarting(call("GET", "/", Root)).pipe(
    Effect.mapError((error) => (error.status === 404 ? foreign(url) : error))
  )
  const vapidKey = root.capabilities?.webpush?.vapid_public_key
  if (vapidKey === undefined)
    yield* note("the service does not name its VAPID key, so signatures are not verified")
  const { subscription, pushes } = yield* openPushEndpoint(vapidKey)

  const subscribe = call("POST", "/subscriptions", Subscribed, {
    data: { ...subscription, ...(vapidKey === undefined ? {} : { vapid_public_key: vapidKey }) }
  })
  const subscribed = Effect.tapError(subscribe, explain)
  const { data } = yield* Effect.acquireRelease(subscribed, ({ data }) =>
    removing("the subscription", call("DELETE", `/subscriptions/${data.id}`, Schema.Unknown))
  )
  const registration = `/channels/${encodeURIComponent(channel)}/registration`
  yield* Effect.acquireRelease(call("PUT", registration, Schema.Unknown), () =>
    removing("the registration", call("DELETE", registration, Schema.Unknown))
  )
  yield* Console.log(
    json
      ? printableJson({ event: "listening", channel, subscription: data.id })
      : `listening on channel ${printable(channel)}, ` +
          `subscription ${printable(data.id.slice(0, 12))}`
  )

  const enough = Option.getOrElse(count, () => Number.POSITIVE_INFINITY)
  for (let printed = 0; printed < enough; ) {
    const push = yield* Queue.take(pushes)
    if (push._tag === "Refused") {
      yield* note(`refused a push with ${push.status}: ${printable(push.reason)}`)
    } else {
      yield* Console.log(json ? jsonOf(channel, push) : lineOf(push))
      printed += 1
    }
  }
}, Effect.scoped)

const loopbackHint =
  "a listener receives pushes on this machine, which a service allows only with " +
  "BELLCAST_ALLOW_LOOPBACK_ENDPOINTS=true"

/** Says what to do about a service that refuses the listener's endpoint. */
const explain = ({ message, status }: ApiError): Effect.Effect<void> =>
  status === 400 && message.includes("data.endpoint") ? note(loopbackHint) : Effect.void

/** A user of its own for each listener: the end of a listener removes its user's registration. */
const newUser = () => `listener-${randomBytes(4).toString("hex")}:secret`

const flags = {
  channel: argument("channel", "Channel to register on; it need not exist"),
  url: named("url", "URL").pipe(
    Flag.withDescription(
      `Base URL of the service (BELLCAST_URL); unset: that of the running one, else ${urlDefault}`
    ),
    Flag.withFallbackConfig(Config.String("BELLCAST_URL")),
    Flag.optional
  ),
  user: named("user", "NAME:PASSWORD").pipe(
    Flag.withDescription("Who listens, name:password (BELLCAST_USER); unset: a new user"),
    Flag.withFallbackConfig(Config.String("BELLCAST_USER").pipe(Config.withDefault(newUser())))
  ),
  token: named("token", "TOKEN").pipe(
    Flag.withDescription(
      "Instead of --user: a bearer token (BELLCAST_TOKEN), such as `bellcast sign-user` prints"
    ),
    Flag.withFallbackConfig(Config.String("BELLCAST_TOKEN")),
    Flag.optional
  ),
  count: optional(number("count", "N"), "Exit after this many pushes; unset: never"),
  json: jsonFlag
}

/** The service that runs beside the embedded server of this data folder. */
const runningUrl = Effect.gen(function* () {
  const dataDir = yield* Effect.orDie(settings.dataDir)
  const found = yield* Effect.promise(() => apiAddressIn(folderAt(join(dataDir, "nats"))))
  return found ?? urlDefault
})

/** The verb. Errors are printed as one line, and the exit code is 1. */
export const listenCommand = Command.make("listen", flags, (options) =>
  Effect.gen(function* () {
    const url = Option.getOrUndefined(options.url) ?? (yield* runningUrl)
    const authorization = Option.match(options.token, {
      onSome: (token) => `Bearer ${token}`,
      onNone: () => `Basic ${Buffer.from(options.user).toString("base64")}`
    })
    yield* listen({ ...options, url, authorization })
  }).pipe(noted)
).pipe(
  Command.withDescription("Print every push of a channel, decrypted, as a browser would receive it")
)
