// Tokens of servers: on which channels they publish, whether they have the right `users` and that
// of operators, and until when. Only the hash of a token is known here. Pure.
import * as Schema from "effect/Schema"
import { Timestamp } from "./timestamp.ts"

/** SHA-256 of a token, in base64url. */
const Hash = Schema.String.pipe(Schema.check(Schema.isPattern(/^[A-Za-z0-9_-]{43}$/)))

export const AccessTokenPut = Schema.Struct({
  hash: Hash,
  /** Patterns of channels, in which `*` stands for any text. */
  channels: Schema.Array(Schema.String),
  /** Whether the token has the right `users`. */
  users: Schema.optionalKey(Schema.Literal(true)),
  /** Whether the token is that of an operator. */
  operator: Schema.optionalKey(Schema.Literal(true)),
  /** Absent: never. */
  expiresAt: Schema.optionalKey(Timestamp),
  at: Timestamp
})
export const AccessTokenDelete = Schema.Struct({ hash: Hash, at: Timestamp })

export type AccessTokenCommand =
  | ({ readonly type: "token.put" } & typeof AccessTokenPut.Type)
  | ({ readonly type: "token.delete" } & typeof AccessTokenDelete.Type)

/** The value of a token's key in the bucket `permissions`. */
export interface AccessToken {
  readonly v: 1
  readonly seq: number
  readonly name: string
  readonly channels: ReadonlyArray<string>
  readonly users?: true
  readonly operator?: true
  /** Milliseconds since the epoch, as the other times. */
  readonly createdAt: number
  readonly expiresAt?: number
  readonly revokedAt?: number
}

/** So many patterns fit into one message of LOG (32 KiB), also if each is of the longest. */
const patternsMax = 50
const patternBytesMax = 255

/** Returns why a text is not the name of a token. Names stand in subjects and in user ids. */
export const tokenNameFault = (name: string): string | undefined =>
  /^[A-Za-z0-9_-]{1,64}$/.test(name)
    ? undefined
    : "the name of a token has 1 to 64 letters, digits, hyphens and underscores"

const isPattern = (pattern: string): boolean =>
  pattern !== "" &&
  pattern.isWellFormed() &&
  !pattern.includes("/") &&
  new TextEncoder().encode(pattern).length <= patternBytesMax

/** Returns why these are not the channels of a token. One with another right needs none. */
export const tokenChannelsFault = (
  patterns: ReadonlyArray<string>,
  hasOther = false
): string | undefined => {
  if ((patterns.length === 0 && !hasOther) || patterns.length > patternsMax)
    return `a token has 1 to ${patternsMax} channels or patterns of channels`
  return patterns.every(isPattern)
    ? undefined
    : `a channel, or a pattern of channels, has 1 to ${patternBytesMax} bytes and no slash`
}

/** Whether a token is valid at a time in milliseconds. */
export const isCurrentToken = ({ expiresAt, revokedAt }: AccessToken, now: number): boolean =>
  revokedAt === undefined && (expiresAt === undefined || now < expiresAt)

interface Folded {
  readonly token: AccessToken | undefined
  /** Why the command is rejected. */
  readonly reason?: string
}

/**
 * Folds one command for the token `name`, stored at `seq`. A command that was folded before changes
 * nothing. A token is made once and revoked for ever: another one of the name has another hash.
 */
export const foldAccessToken = (
  token: AccessToken | undefined,
  command: AccessTokenCommand,
  name: string,
  seq: number
): Folded => {
  if (token !== undefined && seq <= token.seq) return { token }
  if (command.type === "token.delete") {
    if (token?.name !== name) return { token, reason: "there is no such token" }
    return { token: { ...token, seq, revokedAt: token.revokedAt ?? command.at } }
  }
  const { at: createdAt, channels, expiresAt, operator, users } = command
  const isMade = token === undefined ? undefined : "the token was made before"
  const reason = isMade ?? tokenNameFault(name) ?? tokenChannelsFault(channels, users ?? operator)
  if (reason !== undefined) return { token, reason }
  const rights = { channels, ...(users && { users }), ...(operator && { operator }) }
  const made: AccessToken = { v: 1, seq, name, ...rights, createdAt }
  return { token: expiresAt === undefined ? made : { ...made, expiresAt } }
}
