// A draft in requests and responses, where it is read from, and who may see and change it.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { payloadFields, Urgency } from "#domain/broadcast.ts"
import { type DraftPut, formIn } from "#domain/draft.ts"
import { channelsMax, usersMax } from "#domain/recipients.ts"
import type { Caller } from "#identity/identity.ts"
import { appliedMillis, Watermark } from "#nats/follower/watermark.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { keys } from "#streams/buckets.ts"
import { parseDraft, subjects } from "#streams/subjects.ts"
import { isDraftId, type UserToken } from "#streams/tokens.ts"
import { type ApiRequest, type Call, readBody } from "../http/request.ts"
import { badId, type ErrorDetail, errorIn, refuse, refuseInvalid } from "../http/response.ts"
import { recipients, userIdFault } from "../named-user.ts"
import { hasRights, invalidChannel, isChannelId, isOperator, maySend } from "../rights.ts"

/** Bodies of the usual size (16 KiB) that one of a draft may take. */
const bodiesMax = 2
/** Of JSON: with the ids of two users and its headers it fits into a message of LOG (32 KiB). */
const draftBytesMax = 28 * 1024
const nameCharsMax = 200
/** A time of RFC 3339, or what somebody has typed of one. */
const timeCharsMax = 64

const textOf = (max: number) => Schema.String.pipe(Schema.check(Schema.isMaxLength(max)))
const listOf = (max: number) =>
  Schema.optionalKey(Schema.Array(Schema.String).pipe(Schema.check(Schema.isMaxLength(max))))

/**
 * Every member has its type. Whether a broadcast may be like this, what it lacks, and the rights,
 * are checked when it is published.
 */
const Content = Schema.Struct({
  name: Schema.optionalKey(textOf(nameCharsMax)),
  ...payloadFields(Schema.Record(Schema.String, Schema.Unknown)),
  to: Schema.optionalKey(
    Schema.Struct({
      channels: listOf(channelsMax),
      users: listOf(usersMax),
      except_users: listOf(usersMax)
    })
  ),
  at: Schema.optionalKey(textOf(timeCharsMax)),
  delay_seconds: Schema.optionalKey(Schema.Int),
  rate: Schema.optionalKey(Schema.Int),
  pause_when: Schema.optionalKey(Schema.Struct({ failed_share: Schema.Finite })),
  ttl: Schema.optionalKey(Schema.Int),
  urgency: Schema.optionalKey(Urgency),
  topic: Schema.optionalKey(textOf(32)),
  test: Schema.optionalKey(Schema.Boolean)
})
export type Content = typeof Content.Type

export const DraftBody = Schema.Struct({ data: Content })
const decodeBody = readBody(DraftBody)

export const DraftObject = Schema.Struct({
  id: Schema.String,
  /** The id of the user who began it. */
  author: Schema.String,
  /** The id of the user who stored this form of it. */
  changed_by: Schema.String,
  last_modified: Schema.Int,
  ...Content.fields
}).annotate({ identifier: "Draft" })

/** A draft as LOG has it. */
export interface Draft extends Omit<typeof DraftPut.Type, "draft"> {
  readonly id: string
  /** Of this form in LOG. */
  readonly seq: number
  readonly content: Content
}

export const viewOf = ({ at, author, changedBy, content, id }: Draft): typeof DraftObject.Type => ({
  id,
  author,
  changed_by: changedBy,
  last_modified: at,
  ...content
})

/** Reads what a draft shall say, and adds every error to `errors`. */
export const readContent = Effect.fnUntraced(function* (
  request: ApiRequest,
  errors: Array<ErrorDetail>
) {
  const { value } = yield* decodeBody(request, errors, { times: bodiesMax })
  if (value === undefined) return {}
  const content = yield* withIds(value.data, errors)
  if (Buffer.byteLength(JSON.stringify(content)) > draftBytesMax)
    return yield* refuse("body-too-large")
  return content
})

/** The content with the ids of its users, of which none holds a mail address any more. */
const withIds = Effect.fnUntraced(function* (content: Content, errors: Array<ErrorDetail>) {
  const { to } = content
  if (to === undefined) return content
  const { recipientOf } = yield* recipients
  for (const [i, id] of (to.channels ?? []).entries())
    if (!isChannelId(id)) errors.push(errorIn("body", `data.to.channels.${i}`, invalidChannel))
  const named = { users: to.users, except_users: to.except_users }
  const ids = Object.entries(named).flatMap(([name, given]) => {
    if (given === undefined) return []
    const known = given.map((each, i) => {
      const id = recipientOf(each)?.id
      if (id === undefined) errors.push(errorIn("body", `data.to.${name}.${i}`, userIdFault))
      return id ?? ""
    })
    return [[name, known] as const]
  })
  return { ...content, to: { ...to, ...Object.fromEntries(ids) } }
})

/** The id in the path. */
export const draftIdOf = ({ params }: Pick<Call, "params">) => {
  const id = params["draft"] ?? ""
  return isDraftId(id) ? Effect.succeed(id) : refuseInvalid([badId])
}

export const unknownDraft = (id: string) =>
  refuse("unknown-object", { details: { id, resource_name: "draft" } })

/** The draft of a message of LOG; undefined: it is none. */
export const draftIn = ({ message, seq, subject }: Stored): Draft | undefined => {
  const id = parseDraft(subject)
  if (message.type !== "draft.put" || id === undefined) return undefined
  const { at, author, changedBy, draft, user } = message
  // Only a gateway stores one, of this type.
  return { id, seq, at, author, changedBy, user, content: draft as Content }
}

/** The index of an author, as the leader has it; undefined: the author has no draft. */
export const draftsOf = (author: UserToken) =>
  Effect.flatMap(Buckets, (buckets) =>
    Effect.map(buckets.get("drafts", keys.drafts(author)), (entry) => entry?.value)
  )

const isListed = (author: UserToken, id: string) =>
  Effect.map(draftsOf(author), (index) => index !== undefined && formIn(index, id) !== undefined)

/**
 * The draft with an id, and the sequence of the last message on its subject; 0: there is none. That
 * message may be of a draft that was published or deleted a moment ago: the index says so, once the
 * projection has applied the message.
 */
export const findDraft = Effect.fnUntraced(function* (id: string) {
  const last = yield* (yield* EventLog).last("log", subjects.draft(id))
  const draft = last === undefined ? undefined : draftIn(last)
  const lastSeq = last?.seq ?? 0
  if (draft === undefined || (yield* isListed(draft.user, id))) return { draft, lastSeq }
  yield* (yield* Watermark).reached(lastSeq, appliedMillis)
  return { draft: (yield* isListed(draft.user, id)) ? draft : undefined, lastSeq }
})

/** Whether somebody else than the author may use a draft: as one may send to all its channels. */
const mayShare = Effect.fnUntraced(function* (
  caller: Caller,
  { to: { channels = [], except_users = [], users = [] } = {} }: Content,
  may: typeof maySend = maySend
) {
  // Others with the right `users` must not read letters to single people.
  if (channels.length === 0 || users.length + except_users.length > 0) return false
  return yield* may(caller, channels, false)
})

const isAuthor = ({ user }: Caller, draft: Draft): boolean => draft.user === user

/** Whether a caller may change a draft, to what it shall say then. */
export const mayChange = Effect.fnUntraced(function* (
  caller: Caller,
  draft: Draft,
  content: Content = draft.content
) {
  if (isAuthor(caller, draft)) return true
  return (yield* mayShare(caller, draft.content)) && (yield* mayShare(caller, content))
})

/**
 * How a caller sees a draft: as one who may change it, or as an operator, who may only look at it
 * and delete it. Undefined: not at all. `may`: `maySend`, or what remembers its responses.
 */
export const sightOf = Effect.fnUntraced(function* (
  caller: Caller,
  draft: Draft,
  may: typeof maySend = maySend
) {
  if (isAuthor(caller, draft) || (yield* mayShare(caller, draft.content, may)))
    return "editor" as const
  return (yield* isOperator(caller)) ? ("operator" as const) : undefined
})

/**
 * Whether a caller may begin a draft: who may publish somewhere. A grant is known by its channel
 * only, so one who has nothing else names such a channel.
 */
export const mayBegin = Effect.fnUntraced(function* (caller: Caller, { to }: Content) {
  if ((yield* hasRights(caller)) || (yield* isOperator(caller))) return true
  for (const channel of to?.channels ?? [])
    if (yield* maySend(caller, [channel], false)) return true
  return false
})
