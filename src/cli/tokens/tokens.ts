// The tokens of servers that publish, as LOG has them, and how a change is appended.
import * as Effect from "effect/Effect"
import {
  type AccessToken,
  type AccessTokenCommand,
  foldAccessToken,
  tokenNameFault
} from "#domain/access-token.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, parseToken, subjects } from "#streams/subjects.ts"
import { demandLog } from "../nats/room.ts"
import { failed } from "../terminal/failed.ts"

/** The last token of a name. */
export interface Named {
  /** Sequence of the last message, applied or rejected. */
  readonly seq: number
  readonly hash: string
  readonly token: AccessToken | undefined
}

const noToken: Named = { seq: 0, hash: "", token: undefined }

const isCommand = (message: { readonly type: string }): message is AccessTokenCommand =>
  message.type.startsWith("token.")

const nextOf = (before: Named, command: AccessTokenCommand, name: string, seq: number): Named => {
  const { hash } = command
  const known = hash === before.hash ? before.token : undefined
  const { reason, token } = foldAccessToken(known, command, name, seq)
  return reason === undefined ? { seq, hash, token } : { ...before, seq }
}

/** The tokens whose commands a filter matches, by name. */
const tokensOf = Effect.fnUntraced(function* (filter: string) {
  const log = yield* EventLog
  yield* demandLog
  const tokens = new Map<string, Named>()
  yield* log.replay("log", [filter], ({ message, seq, subject }) => {
    const name = parseToken(subject)
    if (name === undefined) return
    const before = tokens.get(name) ?? noToken
    tokens.set(name, isCommand(message) ? nextOf(before, message, name, seq) : { ...before, seq })
  })
  return tokens
})

export const allTokens = tokensOf(filters.tokens)

/** The last token of a name. Fails if there can be no such name. */
export const tokenNamed = Effect.fnUntraced(function* (name: string) {
  const fault = tokenNameFault(name)
  if (fault !== undefined) return yield* failed(fault)
  return (yield* tokensOf(subjects.token(name))).get(name) ?? noToken
})

/** Appends a command. Fails if another operator writes at the same time. Returns its sequence. */
export const appendToken = Effect.fnUntraced(function* (
  name: string,
  { type, ...body }: AccessTokenCommand,
  expect: number
) {
  const message = { subject: subjects.token(name), type, body, expect }
  return (yield* (yield* EventLog).append("log", message)).seq
})
