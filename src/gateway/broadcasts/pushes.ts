// GET /broadcasts/{id}/pushes: what became of each push, in pages of JSON or CSV. Never names a
// user or an endpoint.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { csvOf } from "#basics/csv.ts"
import { listPushes } from "#broadcasts/pushes.ts"
import { Fate, type PushResult } from "#domain/outcome.ts"
import { pushServiceNames, pushServiceOf } from "#domain/subscription/endpoint.ts"
import { Identity } from "#identity/identity.ts"
import { type Call, prefersCsv } from "../http/request.ts"
import { type ErrorDetail, ok, refuse } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { limitOf, nextPage } from "../listing/page.ts"
import { readPages, singles } from "../listing/query.ts"
import { recordLook, userIdFault } from "../named-user.ts"
import { operation } from "../operation.ts"
import { isOperator } from "../rights.ts"
import { findOwn } from "./broadcast.ts"

/** Most pushes of a page: 100 KB. */
const pushesMax = 500

const csvType = "text/csv; header=present; charset=UTF-8"

/** A push in a response. */
export const PushObject = Schema.Struct({
  subscription: Schema.String,
  push_service: Schema.Literals(pushServiceNames),
  outcome: Fate,
  reason: Schema.String,
  /** HTTP status of the last response. */
  status: Schema.optionalKey(Schema.Int),
  attempts: Schema.Int,
  /** Milliseconds that the last attempt took at the push service. */
  millis: Schema.Int,
  at: Schema.Int,
  /** The next attempt, where the outcome is `retrying`. */
  next_at: Schema.optionalKey(Schema.Int),
  /** The language of the variant that was sent. */
  locale: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "Push" })

export const pushView = (result: PushResult): typeof PushObject.Type => {
  const { at, attempt: attempts, fate: outcome, locale, millis, nextAt, status } = result
  return {
    subscription: result.subscription,
    push_service: pushServiceOf(result),
    outcome,
    reason: result.reason,
    ...(status !== undefined && { status }),
    attempts,
    millis,
    at,
    ...(nextAt !== undefined && { next_at: nextAt }),
    ...(locale !== undefined && { locale })
  }
}

/** The columns of CSV, in the order of the members. */
const columns = Object.keys(PushObject.fields) as ReadonlyArray<keyof typeof PushObject.Type>

/** The pushes of a page as CSV. Spreadsheets know no milliseconds since the epoch. */
const csvPage = (rows: ReadonlyArray<PushResult>): string =>
  csvOf(
    columns,
    rows
      .map(pushView)
      .map((push) => columns.map((name) => (isTime(name) ? timeOf(push[name]) : push[name])))
  )

const isTime = (name: string): name is "at" | "next_at" => name === "at" || name === "next_at"
const timeOf = (millis: number | undefined): string | undefined =>
  millis === undefined ? undefined : new Date(millis).toISOString()

const read = Effect.fnUntraced(function* (call: Call, errors: Array<ErrorDetail>) {
  const input = yield* readPages(call, errors)
  const { oneOf, refuse, text } = singles(call.query, errors)
  const id = text("user")
  const user = id === undefined ? undefined : (yield* Identity).userOf(id)
  if (id !== undefined && user === undefined) refuse("user", userIdFault)
  const outcome = oneOf("outcome", Fate.literals)
  return { ...input, outcome, service: oneOf("push_service", pushServiceNames), user }
})

export const pushesGet = operation({
  access: "principal",
  exposes: ["Next-Page"],
  read,
  run: Effect.fnUntraced(function* ({ listing, outcome, service, user }, call) {
    const isAllowed = user === undefined || (yield* isOperator(call.caller!))
    if (user !== undefined && isAllowed) call.isAbout(user.user)
    const origin = yield* findOwn(call)
    if (!isAllowed) return yield* refuse("forbidden")
    if (user !== undefined) yield* recordLook(call, user.user, origin.stored.seq)
    const limit = yield* limitOf(listing, pushesMax)
    const { i = 0, seq = 1 } = listing.token?.last_object ?? {}
    const { next, rows } = yield* listPushes(origin, {
      user: user?.user,
      from: { seq: Number(seq), i: Number(i) },
      limit,
      isWanted: (result) =>
        (outcome === undefined || result.fate === outcome) &&
        (service === undefined || pushServiceOf(result) === service)
    })
    const pages = yield* nextPage(call, {
      path: `/broadcasts/${origin.stored.seq}/pushes`,
      place: next && { ...next },
      limit
    })
    const headers = { ...noStore, Vary: "Accept", ...pages }
    if (!prefersCsv(call.request.headers["accept"]))
      return ok({ data: rows.map(pushView) }, headers)
    return { status: 200, headers: { ...headers, "Content-Type": csvType }, text: csvPage(rows) }
  }),
  doc: {
    summary: "List what became of each push of a broadcast",
    parameters: ["pages", "pushes"],
    responses: { 200: Schema.Struct({ data: Schema.Array(PushObject) }) },
    textType: "text/csv",
    errors: [403, 404, 413]
  }
})
