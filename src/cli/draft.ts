// `bellcast draft list|show|publish|delete`: what an operator sees of drafts, and does with them. A
// gateway publishes one, as it does for every other publisher.
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { jsonObjectOf } from "#basics/json.ts"
import { readSome } from "#broadcasts/list.ts"
import { byHeaders } from "#domain/broadcast.ts"
import { formIn } from "#domain/draft.ts"
import { Accepted } from "#gateway/broadcasts/publish.ts"
import { type DraftObject, draftIn, draftsOf, findDraft, viewOf } from "#gateway/drafts/form.ts"
import { requestApi } from "#nats/connection/micro.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { isDraftId } from "#streams/tokens.ts"
import { printable } from "#telemetry/redaction.ts"
import { demandLog, reachedInTime } from "./nats/log.ts"
import { natsFlags, onNats, showOne } from "./nats/on-nats.ts"
import { jsonFlag, limitFlag, number, sourceFlag } from "./terminal/input.ts"
import { counted, failed, isoOf, note, printMore, printRows } from "./terminal/output.ts"

/** Messages of LOG that are read at a time: 1.6 MB at most. */
const readAtOnce = 50

const draftArgument = Argument.String("draft").pipe(
  Argument.withDescription("The id of the draft"),
  Argument.filter(isDraftId, () => "Expected letters, digits, _ or -, 64 at most")
)

type View = typeof DraftObject.Type

const list = Effect.fnUntraced(function* (limit: number) {
  yield* demandLog
  const log = yield* EventLog
  return yield* readSome(
    limit,
    Effect.fnUntraced(function* (from: number | undefined, most: number) {
      const before = from ?? Number.MAX_SAFE_INTEGER
      const found = yield* log.newest("log", filters.drafts, { before, limit: readAtOnce })
      const drafts = found.flatMap((stored) => draftIn(stored) ?? [])
      const current = yield* Effect.filter(drafts, ({ id, seq, user }) =>
        Effect.map(draftsOf(user), (index) => index !== undefined && formIn(index, id) === seq)
      )
      const rows = current.slice(0, most)
      const last = rows.length < current.length ? rows.at(-1)! : found.at(-1)
      return {
        rows,
        next: found.length < readAtOnce && last === found.at(-1) ? undefined : last?.seq
      }
    })
  )
})

const shown = {
  heading: ["DRAFT", "CHANGED", "TO", "NAME", "AUTHOR"],
  cellsOf: (view: View) => [
    ...[view.id, new Date(view.last_modified).toISOString(), recipientsOf(view)],
    ...[view.name, view.author]
  ],
  none: "no drafts"
}

const recipientsOf = ({ to: { channels = [], except_users, users } = {} }: View): string =>
  [
    ...channels,
    ...(users === undefined ? [] : [counted(users.length, "user")]),
    ...(except_users === undefined ? [] : [`except ${except_users.length}`])
  ].join(", ")

const listCommand = Command.make(
  "list",
  { limit: limitFlag, json: jsonFlag, ...natsFlags },
  ({ json, limit, ...nats }) =>
    Effect.gen(function* () {
      const { isMore, rows } = yield* list(limit)
      yield* printRows(json, rows.map(viewOf), shown)
      if (isMore) yield* printMore(json, rows.length)
    }).pipe(onNats(nats))
).pipe(Command.withDescription("List drafts, the newest change first"))

const demandDraft = Effect.fnUntraced(function* (id: string) {
  yield* demandLog
  const found = yield* findDraft(id)
  return found.draft === undefined
    ? yield* failed(`there is no draft ${id}`)
    : { ...found, draft: found.draft }
})

/** When a draft changed: as a time, and as the number that `draft publish` takes. */
const reviewText = ({ last_modified: at }: View): string => `${isoOf(at)} (--reviewed ${at})`

const showCommand = showOne({
  named: draftArgument,
  read: (id: string) => Effect.map(demandDraft(id), ({ draft }) => viewOf(draft)),
  textOf: (view: View) =>
    Object.entries(view)
      .map(([name, value]) => {
        const text = typeof value === "object" ? JSON.stringify(value) : String(value)
        return `${name.padEnd(16)}${printable(name === "last_modified" ? reviewText(view) : text)}`
      })
      .join("\n"),
  description: "Show a draft: who wrote it, and what it says",
  example: { command: "bellcast draft show christmas", description: "Show the draft christmas" }
})

const ErrorBody = Schema.Struct({ error_code: Schema.String, message: Schema.String })

const publish = Effect.fnUntraced(function* (draft: string, reviewed: number, source: string) {
  const headers = { "If-Match": `"${reviewed}"` }
  const subject = subjects.api(source, "draft-publish")
  const reply = yield* requestApi(subject, { draft }, headers)
  if (reply === undefined)
    return yield* failed("no gateway responds: a process with the role gateway has to run")
  const got = jsonObjectOf(reply.text)
  if (Schema.is(Accepted)(got)) {
    yield* Console.log(`broadcast ${printable(got.id)} is accepted`)
    for (const warning of got.warnings) yield* note(warning)
    return
  }
  const said = Schema.is(ErrorBody)(got) ? `${got.error_code}): ${got.message}` : "no reason)"
  return yield* failed(`the gateway refused it (${reply.status}, ${said}`)
})

const publishCommand = Command.make(
  "publish",
  {
    draft: draftArgument,
    reviewed: number("reviewed", "N").pipe(
      Flag.withDescription("`last_modified` of what was reviewed, as `draft show` prints it")
    ),
    source: sourceFlag,
    ...natsFlags
  },
  ({ draft, reviewed, source, ...nats }) =>
    publish(draft, reviewed, source).pipe(onNats(nats, { isOfPublisher: true }))
).pipe(
  Command.withDescription("Publish a draft as it was reviewed"),
  Command.withExamples([
    {
      command: "bellcast draft publish christmas --reviewed 1700000000000",
      description: "As `draft show christmas` showed it"
    }
  ])
)

const remove = Effect.fnUntraced(function* (id: string) {
  const { draft, lastSeq } = yield* demandDraft(id)
  const at = Math.max(yield* Clock.currentTimeMillis, draft.at + 1)
  const { seq } = yield* (yield* EventLog).append("log", {
    subject: subjects.draft(id),
    type: "draft.delete",
    body: { user: draft.user, at },
    headers: byHeaders("operator"),
    expect: lastSeq
  })
  yield* reachedInTime(seq)
  yield* Console.log(`draft ${id} is deleted`)
})

const deleteCommand = Command.make(
  "delete",
  { draft: draftArgument, ...natsFlags },
  ({ draft, ...nats }) => remove(draft).pipe(onNats(nats))
).pipe(Command.withDescription("Delete a draft for ever"))

/** The verb. */
export const draftCommand = Command.make("draft").pipe(
  Command.withDescription("List, show, publish and delete drafts of broadcasts"),
  Command.withSubcommands([listCommand, showCommand, publishCommand, deleteCommand])
)
