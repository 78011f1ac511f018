// Requests to JetStream with little overhead: one subscription for all responses, one timer each,
// no Error object unless a request fails. A request of nats.js makes an Error with its stack and
// four promises. Also the one place that subscribes to subjects of core NATS.
import {
  createInbox,
  type Msg,
  type NatsConnection,
  type Subscription
} from "@nats-io/transport-node"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type Failure, isMessageNotFound, nothing, parseResponse, Unanswered } from "./errors.ts"
import { type Headers, natsHeadersOf } from "./headers.ts"

/** JetStream's acknowledgement of a stored message. */
export interface PubAck {
  readonly seq: number
  readonly duplicate?: boolean
}

/** Called once, with the JSON of the response or with the error. */
export type Received<A> = (result: Result.Result<A, Failure>) => void

interface Outgoing {
  readonly subject: string
  readonly payload: string
  readonly timeoutMillis: number
  readonly headers?: Headers | undefined
}

export interface Requests {
  /**
   * Sends a request that has several responses, in this turn of the event loop. `receive` is called
   * with each until it returns true; `failed` if that takes too long, if nothing could be sent, or
   * if `receive` throws. The returned function stops waiting.
   */
  readonly requestMany: (
    request: Outgoing,
    receive: (msg: Msg) => boolean,
    failed: (error: Failure) => void
  ) => () => void
  /** As `requestMany`, with one response. */
  readonly send: <A>(
    subject: string,
    payload: string,
    timeoutMillis: number,
    headers: Headers | undefined,
    received: Received<A>
  ) => () => void
  /**
   * Publishes without a response. Errors are ignored: the request that follows in the same batch
   * fails as well.
   */
  readonly publish: (subject: string, payload: string, headers: Headers) => void
  /** First tokens of the subjects of JetStream's API, in the domain of this account. */
  readonly api: string
  /** Asks JetStream's API (`STREAM.INFO.<stream>`) and returns the JSON of the response. */
  readonly request: <A>(
    operation: string,
    payload: string,
    timeoutMillis: number
  ) => Effect.Effect<A, Failure>
  /** A message of a stream as its leader has it; undefined: there is none. */
  readonly message: (
    stream: string,
    query: Query
  ) => Effect.Effect<StoredMessage | undefined, Failure>
}

/**
 * The last on a subject; the one at a sequence; the first that a filter matches from a sequence.
 */
export type Query =
  | { readonly last_by_subj: string }
  | { readonly seq: number }
  | { readonly seq: number; readonly next_by_subj: string }

/** A message as the server returns it. Bytes are base64, or absent when there are none. */
export interface StoredMessage {
  readonly subject: string
  readonly seq: number
  readonly time: string
  readonly data?: string
  readonly hdrs?: string
}

const readMillis = 5_000

interface RequestOptions {
  readonly inboxPrefix?: string | undefined
  readonly jsDomain?: string | undefined
}

export const makeRequests = (
  nc: NatsConnection,
  { inboxPrefix, jsDomain }: RequestOptions = {}
): Requests => {
  const requestMany = makeRequestMany(nc, inboxPrefix)
  const send = makeSend(requestMany)
  const api = jsDomain === undefined ? "$JS.API" : `$JS.${jsDomain}.API`
  const request = makeRequest(send, api)
  return {
    requestMany,
    send,
    api,
    publish: (subject, payload, headers) => {
      try {
        nc.publish(subject, payload, { headers: natsHeadersOf(headers) })
      } catch {}
    },
    request,
    message: (stream, query) =>
      request<{ readonly message: StoredMessage }>(
        `STREAM.MSG.GET.${stream}`,
        JSON.stringify(query),
        readMillis
      ).pipe(
        Effect.map(({ message }) => message),
        Effect.catchIf(isMessageNotFound, () => nothing)
      )
  }
}

const makeRequestMany = (
  nc: NatsConnection,
  inboxPrefix: string | undefined
): Requests["requestMany"] => {
  const prefix = `${createInbox(inboxPrefix)}.`
  const waiting = new Map<string, (msg: Msg) => void>()
  let last = 0
  listen(nc, {
    subject: `${prefix}*`,
    receive: (msg) => waiting.get(msg.subject.slice(prefix.length))?.(msg),
    failed: () => {}
  })
  return ({ headers, payload, subject, timeoutMillis }, receive, failed) => {
    const token = (++last).toString(36)
    const end = () => {
      clearTimeout(timer)
      waiting.delete(token)
    }
    const fail = (message: string) => {
      end()
      failed(new Unanswered({ message }))
    }
    const timer = setTimeout(() => fail(`no answer within ${timeoutMillis} ms`), timeoutMillis)
    waiting.set(token, (msg) => {
      try {
        if (receive(msg)) end()
      } catch {
        // The error's text may show what is stored.
        fail("an answer cannot be read")
      }
    })
    try {
      nc.publish(subject, payload, {
        reply: prefix + token,
        ...(headers === undefined ? {} : { headers: natsHeadersOf(headers) })
      })
    } catch (cause) {
      fail(String(cause))
    }
    return end
  }
}

const makeSend =
  (requestMany: Requests["requestMany"]): Requests["send"] =>
  <A>(
    subject: string,
    payload: string,
    timeoutMillis: number,
    headers: Headers | undefined,
    received: Received<A>
  ) =>
    requestMany(
      { subject, payload, timeoutMillis, headers },
      (msg) => {
        received(parseResponse<A>(msg))
        return true
      },
      (error) => received(Result.fail(error))
    )

/** A request that is sent at the end of this turn of the event loop, for several callers. */
interface Shared {
  readonly waiting: Set<Received<unknown>>
  readonly start: () => void
  cancel: () => void
}

/**
 * Sends the requests of one turn of the event loop together: a write costs a fifth of a request.
 * Equal requests are sent once. All were made before the server reads, so the response is new
 * enough for each.
 */
const makeRequest = (send: Requests["send"], api: string): Requests["request"] => {
  const outgoing = new Map<string, Shared>()
  const sendAll = () => {
    const now = [...outgoing.values()]
    outgoing.clear()
    for (const { start } of now) start()
  }
  const add = (key: string, operation: string, payload: string, timeoutMillis: number) => {
    const waiting: Shared["waiting"] = new Set()
    const received: Received<unknown> = (result) => {
      for (const each of waiting) each(result)
    }
    const one: Shared = {
      waiting,
      start: () => {
        one.cancel = send(`${api}.${operation}`, payload, timeoutMillis, undefined, received)
      },
      cancel: () => void outgoing.delete(key)
    }
    if (outgoing.set(key, one).size === 1) setImmediate(sendAll)
    return one
  }
  return <A>(operation: string, payload: string, timeoutMillis: number) =>
    Effect.callback<A, Failure>((resume) => {
      const key = `${operation} ${timeoutMillis} ${payload}`
      const one = outgoing.get(key) ?? add(key, operation, payload, timeoutMillis)
      const received: Received<unknown> = (result) =>
        resume(Effect.fromResult(result as Result.Result<A, Failure>))
      one.waiting.add(received)
      return Effect.sync(() => {
        one.waiting.delete(received)
        if (one.waiting.size === 0) one.cancel()
      })
    })
}

export interface Listening {
  /** May have wildcards. */
  readonly subject: string
  /** Of all processes that listen with this name, one receives each message. */
  readonly queue?: string | undefined
  readonly receive: (msg: Msg) => void
  /** Called with what `receive` throws. */
  readonly failed: (cause: unknown) => void
}

/**
 * Whether a response would be stored: NATS lets a client name any reply subject, also those that
 * only the service may publish.
 */
const isStored = (reply = ""): boolean => reply.startsWith("$") || reply.startsWith("bellcast.")

/**
 * Passes each message to `receive`, but for those that ask for a response on a subject of the
 * service's. If a callback throws, nats.js 3.4 stops reading, prints that outside the log, and the
 * process is without NATS for as long as two pings take. So nobody else in this program subscribes,
 * and what a callback throws ends here. A subscription that is refused is reported with the status.
 */
export const listen = (
  nc: NatsConnection,
  { failed, queue, receive, subject }: Listening
): Subscription =>
  nc.subscribe(subject, {
    ...(queue === undefined ? {} : { queue }),
    callback: (error, msg) => {
      if (error !== null || isStored(msg.reply)) return
      try {
        receive(msg)
      } catch (cause) {
        failed(cause)
      }
    }
  })
