// Answers requests of NATS clients, and describes the service in the form of NATS micro (ADR-32),
// so that `nats micro list` finds it.
import {
  InvalidArgumentError,
  type Msg,
  headers as newHeaders,
  nuid,
  PermissionViolationError,
  RequestError,
  type Subscription
} from "@nats-io/transport-node"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { Nats } from "./connection.ts"
import { attempt, type NatsUnavailable } from "./errors.ts"
import { headersOf, natsHeadersOf } from "./headers.ts"

export interface MicroRequest {
  readonly subject: string
  /**
   * Names are in lower case. Several values of one name are joined by commas. "malformed": the
   * bytes are no headers.
   */
  readonly headers: Readonly<Record<string, string>> | "malformed"
  readonly body: Uint8Array
}

export interface MicroResponse {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly error?: { readonly code: number; readonly text: string }
}

interface MicroEndpoint<R> {
  readonly name: string
  /** May have wildcards. */
  readonly subject: string
  readonly handle: (request: MicroRequest) => Effect.Effect<MicroResponse, never, R>
}

interface MicroService<R> {
  readonly name: string
  /** A semantic version. */
  readonly version: string
  readonly description: string
  readonly endpoints: ReadonlyArray<MicroEndpoint<R>>
}

/** Bytes that the headers of a response take at most: those of HTTP are bounded by 16 KiB, too. */
const headerBytesMax = 16 * 1024

/** How long the end waits for the server to confirm that it sends no more requests. */
const drainMillis = 2_000

export class Micro extends Context.Service<
  Micro,
  {
    /**
     * Answers requests until the scope closes; each request goes to one of all processes that serve
     * the same service. At the end it takes no more, and finishes those that it has.
     */
    readonly serve: <R>(service: MicroService<R>) => Effect.Effect<void, never, R | Scope.Scope>
    /** Bytes of the body of a response that the server still takes; a larger one is lost. */
    readonly bodyBytesMax: () => number
  }
>()("bellcast/nats/Micro") {
  static readonly layer = Layer.effect(
    Micro,
    Effect.gen(function* () {
      const { listen, nc } = yield* Nats
      const serve = Effect.fnUntraced(function* <R>(service: MicroService<R>) {
        const run = Effect.runForkWith(yield* Effect.context<R>())
        const running = new Set<Fiber.Fiber<void>>()
        const counted = service.endpoints.map(countedOf)
        const answer = ({ handle }: MicroEndpoint<R>, counts: Counted, msg: Msg) => {
          const fiber = run(Effect.map(handle(requestOf(msg)), respond(msg, counts)))
          running.add(fiber)
          fiber.addObserver(() => running.delete(fiber))
        }
        yield* Effect.acquireRelease(
          Effect.sync(() => [
            ...service.endpoints.map((endpoint, i) =>
              listen({
                subject: endpoint.subject,
                queue: queueGroup,
                receive: (msg) => answer(endpoint, counted[i]!, msg)
              })
            ),
            ...describe(service, counted, listen)
          ]),
          (subscriptions) => Effect.andThen(drain(subscriptions), () => Fiber.awaitAll(running))
        )
      })
      const bodyBytesMax = () => (nc.info?.max_payload ?? 0) - headerBytesMax
      return Micro.of({ bodyBytesMax, serve })
    })
  )
}

const queueGroup = "q"

/** An endpoint in responses to STATS. Times are in nanoseconds. */
const countedOf = ({ name, subject }: Pick<MicroEndpoint<never>, "name" | "subject">) => ({
  name,
  subject,
  queue_group: queueGroup,
  num_requests: 0,
  num_errors: 0,
  last_error: "",
  processing_time: 0,
  average_processing_time: 0
})
type Counted = ReturnType<typeof countedOf>

const requestOf = (msg: Msg): MicroRequest => {
  const { data, subject } = msg
  const read = headersOf(msg)
  if (read === "malformed") return { subject, headers: read, body: data }
  const headers = new Map<string, Array<string>>()
  // Neither copies nor spreads them: one name may come in 50,000 spellings, or with as many values.
  for (const [given, values] of read) {
    const name = given.toLowerCase()
    const known = headers.get(name)
    if (known === undefined) headers.set(name, [...values])
    else for (const value of values) known.push(value)
  }
  return {
    subject,
    headers: Object.fromEntries([...headers].map(([name, values]) => [name, values.join(", ")])),
    body: data
  }
}

/** Counts and sends a response. Without a connection nobody receives it. */
const respond = (msg: Msg, counts: Counted) => {
  const began = performance.now()
  return ({ body, error, headers: given }: MicroResponse): void => {
    counts.num_requests++
    counts.processing_time += Math.round((performance.now() - began) * 1e6)
    counts.average_processing_time = Math.round(counts.processing_time / counts.num_requests)
    const headers = new Map(Object.entries(given))
    if (error !== undefined) {
      counts.num_errors++
      counts.last_error = `${error.code}:${error.text}`
      headers.set("Nats-Service-Error-Code", String(error.code))
      headers.set("Nats-Service-Error", error.text)
    }
    try {
      msg.respond(body, { headers: natsHeadersOf(headers) })
    } catch {}
  }
}

/** Responds to PING, INFO and STATS of all services, of those of this name, and of this process. */
const describe = <R>(
  { description, name, version }: MicroService<R>,
  counted: ReadonlyArray<Counted>,
  listen: Nats["Service"]["listen"]
): ReadonlyArray<Subscription> => {
  const identity = { name, id: nuid.next(), version, metadata: {} }
  const started = new Date().toISOString()
  const about: Readonly<Record<string, () => object>> = {
    PING: () => ({}),
    INFO: () => ({
      description,
      endpoints: counted.map(({ name, queue_group, subject }) => ({ name, subject, queue_group }))
    }),
    STATS: () => ({ started, endpoints: counted })
  }
  const tell = (msg: Msg) => {
    const [, verb = ""] = msg.subject.split(".")
    const type = `io.nats.micro.v1.${verb.toLowerCase()}_response`
    try {
      if (Object.hasOwn(about, verb))
        msg.respond(JSON.stringify({ type, ...identity, ...about[verb]!() }))
    } catch {}
  }
  const places = ["$SRV.*", `$SRV.*.${name}`, `$SRV.*.${name}.${identity.id}`]
  return places.map((subject) => listen({ subject, receive: tell }))
}

/** Requests that arrived already are taken. */
const drain = (subscriptions: ReadonlyArray<Subscription>) =>
  Effect.tryPromise(() => Promise.all(subscriptions.map((each) => each.drain()))).pipe(
    Effect.timeout(drainMillis),
    Effect.ignore
  )

/** Longer than the 10 s for which a gateway works on a request. */
const responseMillis = 11_000

interface ApiReply {
  /** The status of an error; 0: it is none. */
  readonly status: number
  readonly text: string
}

/**
 * Whether a gateway may have got a request that ended without a response. Not where the client
 * refused to send its headers, nor where NATS refused it.
 */
export const mayBeSent = (cause: Cause.Cause<NatsUnavailable>): boolean => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  const refusal = error?.cause instanceof RequestError ? error.cause.cause : error?.cause
  const isForbidden = refusal instanceof PermissionViolationError && refusal.operation === "publish"
  return !isForbidden && !(refusal instanceof InvalidArgumentError)
}

/** The response of a gateway; undefined: no gateway runs. */
export const requestApi = Effect.fnUntraced(function* (
  subject: string,
  body: unknown,
  given: Readonly<Record<string, string>>
) {
  const { nc } = yield* Nats
  return yield* attempt("request to the API", async (): Promise<ApiReply | undefined> => {
    try {
      const headers = newHeaders()
      for (const [name, value] of Object.entries(given)) headers.set(name, value)
      const options = { timeout: responseMillis, headers }
      const reply = await nc.request(subject, JSON.stringify(body), options)
      const status = Number(reply.headers?.get("Nats-Service-Error-Code") || 0)
      return { status, text: reply.string() }
    } catch (error) {
      if (error instanceof RequestError && error.isNoResponders()) return undefined
      throw error
    }
  })
})
