// The erasure of a user: the command that asks for it, the fact that it is done, and which messages
// on the user's subjects are over by it. Pure.
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { isUserToken, type UserToken } from "#streams/tokens.ts"
import type { SubscriptionPut } from "./subscription/command.ts"
import { Timestamp } from "./timestamp.ts"

/** The subject names the user, by the pseudonym. `by`: the id of another who wants it. */
export const UserErase = Schema.Struct({
  by: Schema.optionalKey(Schema.String),
  at: Timestamp
})

/** No message of the user from before `command`, a sequence of LOG, is left. */
export const UserErased = Schema.Struct({
  command: Schema.Int,
  by: Schema.optionalKey(Schema.String),
  at: Timestamp
})

/** A message on a subject of a user. */
export interface OfUser {
  readonly seq: number
  /** Whether the user comes back by it: see `comesBack`. */
  readonly isBack: boolean
}

/**
 * Whether a user comes back by a message. A put that restores or renews what the user had was
 * decided before the erasure, and is over. A put of an import may be the first of a new user: so an
 * import that stored one after an erasure has the user erased again.
 */
export const comesBack = (message: { readonly type: string }): boolean => {
  if (message.type !== "subscription.put") return message.type === "registration.put"
  const { replaces, restored } = message as Partial<SubscriptionPut>
  return restored !== true && replaces?.renewal === undefined
}

/**
 * The messages of one subject, in order, that are over by an erasure at `erasedAt`: all before the
 * first one after it with which the user came back. So a fact that a worker appends late is over,
 * too, and so is the end of a registration that the erasure brought about.
 */
export const overIn = <M extends OfUser>(
  messages: ReadonlyArray<M>,
  erasedAt: number
): ReadonlyArray<M> => {
  const back = messages.findIndex(({ isBack, seq }) => seq > erasedAt && isBack)
  return back === -1 ? messages : messages.slice(0, back)
}

/** A line of the operator's list of erased users, which `bellcast user erased --json` prints. */
export const ErasedLine = Schema.Struct({
  user: Schema.String.pipe(Schema.refine(isUserToken)),
  /** When LOG had the fact, in RFC 3339. */
  at: Schema.String,
  by: Schema.optionalKey(Schema.String)
})
export type ErasedLine = typeof ErasedLine.Type

const decodeLine = Schema.decodeUnknownOption(Schema.fromJsonString(ErasedLine))

/** The lines of a list, or the number of the first that is none. */
export const erasedLinesIn = (text: string): ReadonlyArray<ErasedLine> | number => {
  const lines: Array<ErasedLine> = []
  for (const [n, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue
    const decoded = decodeLine(line)
    if (Option.isNone(decoded) || Number.isNaN(Date.parse(decoded.value.at))) return n + 1
    lines.push(decoded.value)
  }
  return lines
}

/**
 * The users of a list whom LOG does not know as erased then or later. `facts`: when LOG stored the
 * last fact about each user, in milliseconds since the epoch.
 */
export const lostErasures = (
  lines: ReadonlyArray<ErasedLine>,
  facts: ReadonlyMap<UserToken, number>
): ReadonlyArray<UserToken> => {
  const lost = lines.filter(({ at, user }) => (facts.get(user) ?? 0) < Date.parse(at))
  return [...new Set(lost.map(({ user }) => user))]
}
