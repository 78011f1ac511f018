// Runs a verb with a connection to NATS: the shared flags, the connection, and errors as one line.
import { existsSync } from "node:fs"
import { join } from "node:path"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Console from "effect/Console"
import type * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import { ServiceClock } from "#clock/clocks.ts"
import { settings } from "#config"
import { addressIn, folderAt, released } from "#embedded/folder.ts"
import { embeddedServer } from "#embedded/server.ts"
import type { Moment, NotInHistory } from "#history/past.ts"
import { hostsOf } from "#nats/connection/connection.ts"
import type {
  AppendConflict,
  NatsUnavailable,
  NoStorage,
  StartRefused
} from "#nats/connection/errors.ts"
import { natsLayer } from "#nats/layer.ts"
import { serverTime } from "#nats/watch/server-time.ts"
import { remedyOf } from "#nats/watch/space.ts"
import {
  inboxPrefixFault,
  type NatsTlsFiles,
  natsTlsFault,
  natsTlsFiles,
  natsTlsSettings,
  natsUrlFault
} from "#settings/addresses.ts"
import { printable, printableJson, withoutSecrets } from "#telemetry/redaction.ts"
import { named, objectFlag } from "../terminal/input.ts"
import { failed, failedBy, note, noted, type VerbFailed } from "../terminal/output.ts"
import { atFlag, presentOr } from "./past.ts"

/** A flag whose default is the value of a setting. */
const flagOf = (name: string, placeholder: string, setting: string, description: string) =>
  named(name, placeholder).pipe(
    Flag.withDescription(description),
    Flag.withFallbackConfig(Config.String(setting)),
    Flag.optional
  )

/** `--tls-ca`, `--tls-cert`, `--tls-key`: PEM files. */
const tlsFlag = (key: keyof NatsTlsFiles, description: string) =>
  flagOf(
    `tls-${key}`,
    "FILE",
    natsTlsSettings[key],
    `${description}; a PEM file (${natsTlsSettings[key]})`
  )

/** The flags of every verb that uses NATS. */
export const natsFlags = {
  nats: flagOf(
    "nats",
    "URL",
    "BELLCAST_NATS_URL",
    "NATS servers, comma-separated (BELLCAST_NATS_URL); " +
      "unset: the embedded one, else port 4222 of this machine"
  ),
  creds: flagOf(
    "creds",
    "FILE",
    "BELLCAST_NATS_CREDS",
    "NATS credentials file (BELLCAST_NATS_CREDS)"
  ),
  inboxPrefix: flagOf(
    "inbox-prefix",
    "PREFIX",
    "BELLCAST_NATS_INBOX_PREFIX",
    "First tokens of the subjects of responses (BELLCAST_NATS_INBOX_PREFIX); unset: _INBOX"
  ),
  jsDomain: named("js-domain", "DOMAIN").pipe(
    Flag.withDescription("JetStream domain of Bellcast, for a user of another NATS account"),
    Flag.optional
  ),
  tlsCa: tlsFlag("ca", "Authorities to trust, with tls://"),
  tlsCert: tlsFlag("cert", "The certificate of this client"),
  tlsKey: tlsFlag("key", "Its private key")
}

type NatsFlags = { readonly [K in keyof typeof natsFlags]: Option.Option<string> }

type Failure = NatsUnavailable | NoStorage | StartRefused | AppendConflict | VerbFailed

interface Options {
  /** Start the embedded server if it does not run. */
  readonly startIt?: boolean
  /** The login may be that of a publisher, who may ask NATS for nothing but the API. */
  readonly isOfPublisher?: boolean
}

/**
 * Runs a verb with a connection of its own. A failure is printed as one line, and the exit code is
 * 1, or that of the failure.
 */
export const onNats =
  (flags: NatsFlags, { isOfPublisher = false, startIt = false }: Options = {}) =>
  <A, R>(verb: Effect.Effect<A, Failure, R>) =>
    Effect.gen(function* () {
      const tls = natsTlsFiles({ ca: flags.tlsCa, cert: flags.tlsCert, key: flags.tlsKey })
      const url = (yield* givenUrl(flags.nats, tls)) ?? (yield* embeddedUrl(startIt))
      const credsFile = Option.getOrUndefined(flags.creds)
      const names = yield* namesIn(flags)
      return yield* (isOfPublisher ? verb : byServerTime(verb)).pipe(
        Effect.provide(natsLayer({ url, credsFile, tls, ...names, name: "bellcast cli" })),
        Effect.mapError((error) =>
          error._tag === "VerbFailed" ? error : failed(inWords(url, error))
        )
      )
    }).pipe(Effect.scoped, noted, Effect.provide(toStderr))

const withoutTime = "NATS did not say its time: the times of this command are those of this machine"

/**
 * Runs a verb by the time of NATS, as every process of the service runs: the times that both store
 * are compared. Before the first start there is no LOG, and the time is that of this machine.
 */
const byServerTime = <A, E, R>(verb: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const clock = new ServiceClock()
    const reading = yield* Effect.catch(serverTime, () => Effect.as(note(withoutTime), undefined))
    if (reading !== undefined) clock.follow(reading)
    return yield* Effect.provideService(verb, Clock.Clock, clock)
  })

/** The address in the flags, if any. Fails if the flags contradict each other. */
const givenUrl = Effect.fnUntraced(function* (given: Option.Option<string>, tls: NatsTlsFiles) {
  const url = Option.getOrUndefined(given)
  const urlFault = url === undefined ? undefined : natsUrlFault(url)
  if (urlFault !== undefined) return yield* failed(`--nats or BELLCAST_NATS_URL: ${urlFault}`)
  const tlsFault = natsTlsFault(url, tls)
  if (tlsFault !== undefined) return yield* failed(tlsFault)
  return url
})

/** The names in subjects of this user. Fails if one cannot stand in a subject. */
const namesIn = Effect.fnUntraced(function* ({ inboxPrefix, jsDomain }: NatsFlags) {
  for (const [name, flag] of [
    ["--inbox-prefix or BELLCAST_NATS_INBOX_PREFIX", inboxPrefix],
    ["--js-domain", jsDomain]
  ] as const) {
    const fault = Option.isNone(flag) ? undefined : inboxPrefixFault(flag.value)
    if (fault !== undefined) return yield* failed(`${name}: ${fault}`)
  }
  return {
    inboxPrefix: Option.getOrUndefined(inboxPrefix),
    jsDomain: Option.getOrUndefined(jsDomain)
  }
})

/**
 * Address of the embedded server. `startIt`: start it, until the scope ends, if it does not run.
 */
const embeddedUrl = Effect.fnUntraced(function* (startIt: boolean) {
  const dataDir = yield* Effect.orDie(settings.dataDir)
  const folder = folderAt(join(dataDir, "nats"))
  if (startIt && existsSync(folder.store) && (yield* Effect.promise(() => released(folder, 0)))) {
    const server = embeddedServer(dataDir).pipe(Effect.mapError(failedBy))
    return (yield* server).url
  }
  return (yield* Effect.promise(() => addressIn(folder)))?.url ?? urlDefault
})

const urlDefault = "nats://127.0.0.1:4222"

const inWords = (url: string, error: Exclude<Failure, VerbFailed>): string => {
  if (error._tag === "NoStorage" || error._tag === "StartRefused") return error.message
  if (error._tag === "AppendConflict") return `another process writes to ${error.subject}`
  if (error.reason._tag === "NoRoom")
    return `${error.reason.stream} has no room: ${remedyOf(error.reason.stream)}`
  if (error.reason._tag === "LaterVersion") return reasonOf(error)
  if (error.reason._tag === "NotConnected")
    return (
      `no answer from NATS at ${hostsOf(url)} (${reasonOf(error)}): is the service running, ` +
      "and is --nats right?"
    )
  return `NATS at ${hostsOf(url)} failed (${error.operation}: ${reasonOf(error)})`
}

const reasonOf = ({ cause }: NatsUnavailable) =>
  withoutSecrets(cause instanceof Error ? cause.message : String(cause))

// The log goes to stderr: stdout has only the verb's output.
const toStderr = Logger.layer([Logger.withConsoleError(Logger.map(Logger.formatLogFmt, printable))])

interface Shown<I, A, R> {
  /** The argument that names the thing. */
  readonly named: Argument.Argument<I>
  readonly read: (name: I) => Effect.Effect<A, Failure, R>
  readonly textOf: (found: A) => string
  readonly description: string
  readonly example: Command.Command.Example
}

const printOne = <I, A, R>({ read, textOf }: Shown<I, A, R>, name: I, json: boolean) =>
  Effect.flatMap(read(name), (found) => Console.log(json ? printableJson(found) : textOf(found)))

/** A verb `show`, with its flags: prints the thing as text or as one JSON object. */
export const showOne = <I, A, R>(shown: Shown<I, A, R>) =>
  Command.make(
    "show",
    { named: shown.named, json: objectFlag, ...natsFlags },
    ({ json, named, ...nats }) => printOne(shown, named, json).pipe(onNats(nats))
  ).pipe(Command.withDescription(shown.description), Command.withExamples([shown.example]))

interface ShownAt<I, A, R> extends Shown<I, A, R> {
  /** Prints the thing as LOG had it. */
  readonly printPast: (
    name: I,
    moment: Moment,
    json: boolean
  ) => Effect.Effect<void, Failure | NotInHistory, R>
  readonly exampleOfPast: Command.Command.Example
}

/** As `showOne`, with the flag `--at`. */
export const showOneAt = <I, A, R>(shown: ShownAt<I, A, R>) =>
  Command.make(
    "show",
    { named: shown.named, at: atFlag, json: objectFlag, ...natsFlags },
    ({ at, json, named, ...nats }) =>
      presentOr(at, printOne(shown, named, json), (moment) =>
        shown.printPast(named, moment, json)
      ).pipe(onNats(nats))
  ).pipe(
    Command.withDescription(shown.description),
    Command.withExamples([shown.example, shown.exampleOfPast])
  )
