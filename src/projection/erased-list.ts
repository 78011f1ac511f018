// The operator's list of erased users: LOG may be restored from a backup that is older than some of
// the erasures, and then has these users again. A start says so, and a command erases them again.
import { readFile } from "node:fs/promises"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Settings } from "#config"
import { erasedLinesIn, lostErasures } from "#domain/erasure.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { parseErasure, subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"

/** The list cannot be read, or is empty. `message` says which. */
export class ListFault extends Schema.TaggedError<ListFault>()("ListFault", {
  message: Schema.String
}) {}

/**
 * Whom a list names, who of them is in LOG again (`lost`), and whose erasure was asked for since
 * the list has it, but is not done (`asked`, with the sequence of the command).
 */
export const readErased = Effect.fnUntraced(function* (file: string) {
  const text = yield* Effect.tryPromise({
    try: () => readFile(file, "utf8"),
    catch: () => new ListFault({ message: `${file} cannot be read` })
  })
  const lines = erasedLinesIn(text)
  if (typeof lines === "number")
    return yield* new ListFault({
      message: `${file}, line ${lines}: Expected a line of bellcast user erased --json`
    })
  const users = [...new Set(lines.map(({ user }) => user))]
  // A shell empties the file of a redirection before the command runs, which may then fail.
  if (users.length === 0)
    return yield* new ListFault({
      message: `${file} names nobody: if somebody was erased, put an earlier copy of the list there`
    })
  const found = yield* (yield* EventLog).lastOf("log", users.map(subjects.erased))
  const facts = new Map<UserToken, number>()
  for (const { at, subject } of found) {
    const user = parseErasure(subject)
    if (user !== undefined) facts.set(user, at)
  }
  const lost = lostErasures(lines, facts)
  const listedAt = new Map<UserToken, number>()
  for (const { at, user } of lines)
    listedAt.set(user, Math.max(listedAt.get(user) ?? 0, Date.parse(at)))
  const asked = new Map<UserToken, number>()
  const commands = yield* (yield* EventLog).lastOf("log", lost.map(subjects.erase))
  for (const { at, seq, subject } of commands) {
    const user = parseErasure(subject)
    if (user !== undefined && at >= listedAt.get(user)!) asked.set(user, seq)
  }
  return { users, lost, asked }
})

/** Says at the start where LOG is older than the list. The service starts all the same. */
export const erasedListLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const file = Option.getOrUndefined((yield* Settings).erasedFile)
    if (file === undefined) return
    const { lost } = yield* readErased(file)
    if (lost.length > 0)
      yield* Effect.logError(
        `LOG is older than ${file}, and has users again who were erased: ${lost.length}. ` +
          `Run \`bellcast user erase --repeat ${file}\``
      )
  }).pipe(
    Effect.catch((err) => Effect.logError("the list of erased users was not compared", { err }))
  )
)
