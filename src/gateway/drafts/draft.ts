// GET, PUT and DELETE /drafts/{id}: what will be a broadcast, until somebody publishes it.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { makeShares } from "#basics/limits.ts"
import { monotonicMillis } from "#clock/clocks.ts"
import { byHeaders } from "#domain/broadcast.ts"
import type { DraftCommand } from "#domain/draft.ts"
import type { Caller } from "#identity/identity.ts"
import { nothing } from "#nats/connection/errors.ts"
import { appliedMillis, Watermark } from "#nats/follower/watermark.ts"
import type { Append } from "#nats/stream/append.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { Space } from "#nats/watch/space.ts"
import { bucketStream } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import { type Preconditions, readPreconditions, stamp, unmet } from "../http/preconditions.ts"
import type { Call } from "../http/request.ts"
import { checked, ok, type Refused, refuse } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { recordLook } from "../named-user.ts"
import { operation } from "../operation.ts"
import { demandRoom, RequestRates } from "../quotas.ts"
import {
  type Content,
  type Draft,
  DraftBody,
  DraftObject,
  draftIdOf,
  draftsOf,
  findDraft,
  mayBegin,
  mayChange,
  readContent,
  sightOf,
  unknownDraft,
  viewOf
} from "./form.ts"

/** Drafts of an author: more than anybody looks through. */
export const draftsMax = 200
/** Of LOG: the headers of a draft, and the message that ends it. */
const overheadBytes = 900
/** How long a write is tried again after others of the same draft. */
const conflictBudgetMillis = 5_000
const conflictDelayMillis = 10

/** Drafts that users store in this gateway now: each may be a new one that no index has yet. */
const storing = makeShares(draftsMax, 1_000)

const asOneOfMany = <A, E, R>({ user }: Caller, store: Effect.Effect<A, E, R>) =>
  Effect.suspend((): Effect.Effect<A, E | Refused, R> => {
    if (!storing.take(user, 1)) return refuse("too-many-at-once")
    return Effect.ensuring(
      store,
      Effect.sync(() => storing.give(user, 1))
    )
  })

const Shown = Schema.Struct({ data: DraftObject })

const readTags = ({ request }: Call, errors: Parameters<typeof readPreconditions>[1]) =>
  Effect.sync(() => readPreconditions(request, errors))

export const draftGet = operation({
  access: "principal",
  exposes: ["Last-Modified", "ETag", "Cache-Control", "Expires", "Pragma"],
  read: readTags,
  run: Effect.fnUntraced(function* (preconditions, call) {
    const id = yield* draftIdOf(call)
    const draft = yield* demandSight((yield* findDraft(id)).draft, id, call)
    yield* checked(unmet(preconditions, targetOf(draft), "read"))
    return ok({ data: viewOf(draft) }, { ...stamp(draft.at), ...noStore })
  }),
  doc: {
    summary: "One draft",
    parameters: ["preconditions"],
    responses: { 200: Shown, 304: null },
    errors: [400, 404, 412]
  }
})

export const draftPut = operation({
  access: "principal",
  takesJson: "always",
  exposes: ["Last-Modified", "ETag"],
  read: Effect.fnUntraced(function* (call, errors) {
    const preconditions = readPreconditions(call.request, errors)
    return { preconditions, content: yield* readContent(call.request, errors) }
  }),
  run: Effect.fnUntraced(function* ({ content, preconditions }, call) {
    const id = yield* draftIdOf(call)
    const caller = call.caller!
    const store = changeDraft(
      id,
      caller,
      Effect.fnUntraced(function* (before, now) {
        yield* checkPut(before, id, content, preconditions, call)
        const { author, user } = before ?? { author: caller.id, user: caller.user }
        const at = Math.max(now, (before?.at ?? 0) + 1)
        const command = { author, user, changedBy: caller.id, at, draft: content }
        return { type: "draft.put", ...command } as const
      })
    )
    const stored = yield* asOneOfMany(caller, store)
    const { at, author, changedBy } = stored.command
    const data = { id, author, changed_by: changedBy, last_modified: at, ...content }
    return ok({ data }, { ...stamp(at), ...noStore }, stored.isNew ? 201 : 200)
  }),
  doc: {
    summary: "Store or replace a draft under an id of the client's choice",
    parameters: ["preconditions"],
    body: DraftBody,
    bodyExample: { data: { name: "Christmas", to: { channels: ["news"] } } },
    bodyRequired: true,
    responses: { 200: Shown, 201: Shown },
    errors: [400, 403, 404, 409, 412, 413, 415, 428, 429, 507]
  }
})

export const draftDelete = operation({
  access: "principal",
  exposes: ["Last-Modified", "ETag"],
  read: readTags,
  run: Effect.fnUntraced(function* (preconditions, call) {
    const id = yield* draftIdOf(call)
    const { command } = yield* changeDraft(
      id,
      call.caller!,
      Effect.fnUntraced(function* (before, now) {
        // The look is all that stays of a deletion: LOG loses the draft, and then this message.
        const draft = yield* demandSight(before, id, call)
        yield* checked(unmet(preconditions, targetOf(draft), "write"))
        const at = Math.max(now, draft.at + 1)
        return { type: "draft.delete", user: draft.user, at } as const
      })
    )
    const { at } = command
    return ok({ data: { id, last_modified: at, deleted: true } }, { ...stamp(at), ...noStore })
  }),
  doc: {
    summary: "Delete a draft",
    parameters: ["preconditions"],
    responses: {
      200: Schema.Struct({
        data: Schema.Struct({
          id: Schema.String,
          last_modified: Schema.Int,
          deleted: Schema.Literal(true)
        })
      })
    },
    errors: [400, 404, 409, 412, 507]
  }
})

/** The draft that was found, if the caller may see it. An operator's look at one is recorded. */
export const demandSight = Effect.fnUntraced(function* (
  draft: Draft | undefined,
  id: string,
  call: Call
) {
  const sight = draft === undefined ? undefined : yield* sightOf(call.caller!, draft)
  if (draft === undefined || sight === undefined) return yield* unknownDraft(id)
  if (sight === "operator") yield* recordLook(call, draft.user)
  return draft
})

export const targetOf = (draft: Draft) => ({
  timestamp: draft.at,
  exists: true,
  existing: viewOf(draft)
})

/**
 * Fails if the caller may not store this now, or does not say what it replaces. A 412 shows the
 * draft, so an operator's look is recorded before.
 */
const checkPut = Effect.fnUntraced(function* (
  before: Draft | undefined,
  id: string,
  content: Content,
  preconditions: Preconditions,
  call: Call
) {
  const caller = call.caller!
  const { ifMatch, ifNoneMatch } = preconditions
  if (before === undefined) {
    yield* checked(unmet(preconditions, { timestamp: 0, exists: false }, "write"))
    if (!(yield* mayBegin(caller, content))) return yield* refuse("forbidden")
    // Before the index, which has some of them a moment later.
    const others = storing.of(caller.user) - 1
    const count = (yield* draftsOf(caller.user))?.drafts.length ?? 0
    if (count + others >= draftsMax) return yield* refuse("too-many-drafts")
    return
  }
  yield* demandSight(before, id, call)
  if (ifMatch === undefined && ifNoneMatch === undefined)
    return yield* refuse("precondition-required")
  yield* checked(unmet(preconditions, targetOf(before), "write"))
  if (!(yield* mayChange(caller, before, content))) return yield* refuse("forbidden")
})

/**
 * Decides on a draft and stores the command, which expects that draft, until no other write comes
 * in between; returns when the next read shows it, by any gateway.
 */
const changeDraft = Effect.fnUntraced(function* <C extends DraftCommand, E, R>(
  id: string,
  caller: Caller,
  decide: (before: Draft | undefined, now: number) => Effect.Effect<C, E, R>
) {
  const deadline = (yield* monotonicMillis) + conflictBudgetMillis
  let isCounted = false
  while (true) {
    const { draft, lastSeq } = yield* findDraft(id)
    const command = yield* decide(draft, yield* Clock.currentTimeMillis)
    // Counted once, also where it is decided again.
    if (!isCounted) yield* admit(command)
    isCounted = true
    const seq = yield* append(id, command, lastSeq, caller)
    if (seq !== undefined) {
      yield* awaitApplied(command, id, seq)
      return { command, isNew: draft === undefined }
    }
    if ((yield* monotonicMillis) >= deadline) return yield* refuse("too-many-writes")
    yield* Effect.sleep(conflictDelayMillis)
  }
})

/** Refuses a form for which there is no room, or of too many bytes. To delete is never too much. */
const admit = Effect.fnUntraced(function* (command: DraftCommand) {
  if (command.type === "draft.delete") return
  yield* demandRoom("draft")
  const bytes = Buffer.byteLength(JSON.stringify(command)) + overheadBytes
  yield* (yield* RequestRates).ofDrafts(command.changedBy, bytes)
})

/** The sequence of the stored command; undefined: another message is the last one by now. */
const append = Effect.fnUntraced(function* (
  id: string,
  command: DraftCommand,
  expect: number,
  { id: by, user }: Caller
) {
  const { type, ...body } = command
  const headers = user === command.user ? {} : { headers: byHeaders(by) }
  const subject = subjects.draft(id)
  const message = { subject, type, body, expect, ...headers } as unknown as Append<typeof type>
  return yield* (yield* EventLog).append("log", message).pipe(
    Effect.map(({ seq }): number | undefined => seq),
    Effect.catchTag("AppendConflict", () => nothing)
  )
})

/** Waits for the projection. Fails with 507 if the bucket has no room for a draft that begins. */
const awaitApplied = Effect.fnUntraced(function* (command: DraftCommand, id: string, seq: number) {
  const { short = [] } = yield* (yield* Watermark).reached(seq, appliedMillis)
  if (command.type === "draft.delete" || !short.includes("drafts")) return
  if ((yield* draftsOf(command.user))?.drafts.some(([each]) => each === id)) return
  yield* (yield* Space).refused(bucketStream("drafts"))
  return yield* refuse("no-room")
})
