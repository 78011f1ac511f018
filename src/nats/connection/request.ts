// Requests to JetStream with little around them: one subscription for all answers, one timer each, and no Error before something is wrong. The client's
// own request makes three Errors with their stacks each time, in case it fails, and four promises: more than half of what a publish costs.
import { JetStreamApiError } from "@nats-io/jetstream"
import { createInbox, type Msg, type MsgHdrs, type NatsConnection } from "@nats-io/transport-node"
import { Data, Effect, Result } from "effect"
import { NatsUnavailable } from "./errors.ts"

/** Nothing is known of what was asked: no answer in time, nobody there, no connection. */
export class Unanswered extends Data.TaggedError("Unanswered")<{ readonly message: string }> {}

export type Failure = JetStreamApiError | Unanswered

/** What JetStream says when it has stored a message. */
export interface PubAck {
  readonly seq: number
  readonly duplicate?: boolean
}

/** Called once, with the JSON of the answer or why there is none. */
export type Answered<A> = (answer: Result.Result<A, Failure>) => void

export interface Requests {
  /** Asks in the same turn of the event loop. What it returns stops waiting for the answer. */
  readonly request: <A>(
    subject: string,
    payload: string,
    timeoutMillis: number,
    headers: MsgHdrs | undefined,
    answered: Answered<A>
  ) => () => void
  /** Publishes and asks for no answer. What cannot be sent is not: the request that follows it will say so. */
  readonly tell: (subject: string, payload: string, headers: MsgHdrs) => void
  /** Asks and returns the JSON of the answer. What the server refuses is a JetStreamApiError. */
  readonly ask: <A>(
    subject: string,
    payload: string,
    timeoutMillis: number
  ) => Effect.Effect<A, Failure>
  /** A message of a stream as its leader has it; undefined: there is none. */
  readonly message: (
    stream: string,
    query: Query
  ) => Effect.Effect<StoredMessage | undefined, Failure>
}

/** The last on a subject; the one at a sequence; the first from a sequence on that a filter matches. */
export type Query =
  | { readonly last_by_subj: string }
  | { readonly seq: number }
  | { readonly seq: number; readonly next_by_subj: string }

/** A message as the server keeps it; bytes are base64, absent when there are none. */
export interface StoredMessage {
  readonly subject: string
  readonly seq: number
  readonly time: string
  readonly data?: string
  readonly hdrs?: string
}

const readMillis = 5_000
const noResponders = 503
const notFound = 404
/** Said for a moment by a server that starts; nothing is known then. */
const notEnabled = 10039

/** Another message stands on the subject than was expected. */
export const wrongLastSequence = 10071
/** Replicated streams only: another write on the subject is in flight, possibly our own previous one. Not a conflict yet. */
export const wrongLastSequenceInFlight = 10164

/** What the server says is wrong; undefined: it said nothing. */
export const codeOf = (failure: Failure): number | undefined =>
  failure instanceof JetStreamApiError ? failure.code : undefined

/** Why nothing was deleted: the stream never had the sequence, or has it no more. */
const sequenceNotFound = 10043
const deleteFailed = 10057

/** Whether a message could not be deleted because it is not there. */
export const isMessageMissing = (error: unknown): boolean =>
  error instanceof JetStreamApiError &&
  (error.code === sequenceNotFound ||
    (error.code === deleteFailed && /not found|no message found/i.test(error.message)))

/** Limits of the account or the server on what is stored. */
const limits = [10002, 10023, 10028, 10047]
/** The stream could not store the message; the description says why. */
const storeFailed = 10077

/** Whether the server refused a message because there is no room for it. */
const isNoRoom = (failure: Failure): boolean => {
  const code = codeOf(failure) ?? 0
  return (
    limits.includes(code) ||
    (code === storeFailed && /maximum (bytes|messages)|no space/i.test(failure.message))
  )
}

/** The error of a message that `stream` did not store. */
export const notStored = (operation: string, stream: string, cause: Failure): NatsUnavailable =>
  new NatsUnavailable({
    operation,
    reason: isNoRoom(cause) ? { _tag: "NoRoom", stream } : { _tag: "RequestFailed" },
    cause
  })

type Refusal = ConstructorParameters<typeof JetStreamApiError>[0]

const messageNotFound = 10037
/** Made once: its stack trace costs as much as the rest of the request. */
const noMessage = new JetStreamApiError({
  code: notFound,
  err_code: messageNotFound,
  description: "no message found"
})

/** What an answer says, or why it is none. */
const answerOf = <A>(msg: Msg): Result.Result<A, Failure> => {
  const unanswered = (message: string) => Result.fail(new Unanswered({ message }))
  if (msg.data.length === 0 && msg.headers?.code === noResponders)
    return unanswered("JetStream does not answer")
  try {
    const answer = msg.json<A & { readonly error?: Refusal }>()
    const { error } = answer
    if (error === undefined) return Result.succeed(answer)
    if (error.err_code === notEnabled) return unanswered(error.description)
    return Result.fail(
      error.err_code === messageNotFound ? noMessage : new JetStreamApiError(error)
    )
  } catch (cause) {
    return unanswered(String(cause))
  }
}

export const makeRequests = (nc: NatsConnection): Requests => {
  const prefix = `${createInbox()}.`
  const waiting = new Map<string, (msg: Msg) => void>()
  let last = 0
  nc.subscribe(`${prefix}*`, {
    callback: (error, msg) => {
      if (error === null) waiting.get(msg.subject.slice(prefix.length))?.(msg)
    }
  })
  const request: Requests["request"] = <A>(
    subject: string,
    payload: string,
    timeoutMillis: number,
    headers: MsgHdrs | undefined,
    answered: Answered<A>
  ) => {
    const token = (++last).toString(36)
    const end = () => {
      clearTimeout(timer)
      waiting.delete(token)
    }
    const fail = (message: string) => {
      end()
      answered(Result.fail(new Unanswered({ message })))
    }
    const timer = setTimeout(() => fail(`no answer within ${timeoutMillis} ms`), timeoutMillis)
    waiting.set(token, (msg) => {
      end()
      answered(answerOf<A>(msg))
    })
    try {
      nc.publish(subject, payload, {
        reply: prefix + token,
        ...(headers === undefined ? {} : { headers })
      })
    } catch (cause) {
      fail(String(cause))
    }
    return end
  }
  const tell: Requests["tell"] = (subject, payload, headers) => {
    try {
      nc.publish(subject, payload, { headers })
    } catch {}
  }
  // What is asked in one turn of the event loop goes out in one write: under load each write is a fifth of a request.
  const outgoing = new Set<() => void>()
  const sendAll = () => {
    const now = [...outgoing]
    outgoing.clear()
    for (const send of now) send()
  }
  const ask: Requests["ask"] = <A>(subject: string, payload: string, timeoutMillis: number) =>
    Effect.callback<A, Failure>((resume) => {
      let cancel = () => {
        outgoing.delete(send)
      }
      const send = () => {
        cancel = request<A>(subject, payload, timeoutMillis, undefined, (answer) =>
          resume(Effect.fromResult(answer))
        )
      }
      if (outgoing.add(send).size === 1) setImmediate(sendAll)
      return Effect.sync(() => cancel())
    })
  const message: Requests["message"] = (stream, query) =>
    ask<{ readonly message: StoredMessage }>(
      `$JS.API.STREAM.MSG.GET.${stream}`,
      JSON.stringify(query),
      readMillis
    ).pipe(
      Effect.map(({ message }) => message),
      Effect.catchIf(
        (cause) => cause instanceof JetStreamApiError && cause.status === notFound,
        () => Effect.as(Effect.void, undefined)
      )
    )
  return { request, tell, ask, message }
}
