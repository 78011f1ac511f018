// The messages of one subject of LOG, some at a time, and what LOG says about them in messages of
// their own. Reads only.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Past } from "#domain/history.ts"
import type { Marks } from "#domain/subscription/command.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { parseSubscription, subjects } from "#streams/subjects.ts"

/** Messages of a subject that are looked at together: a user's have up to 4 KiB each. */
export const PartMax: Context.Reference<number> = Context.Reference<number>(
  "bellcast/history/PartMax",
  { defaultValue: () => 1_000 }
)
const readAtOnce = 500

/**
 * The first messages of a subject. `gone`: sequences that are left out. `isPart`: more may follow.
 */
export const readSome = Effect.fnUntraced(function* (subject: string, gone?: ReadonlySet<number>) {
  const { following } = yield* EventLog
  const max = yield* PartMax
  const messages: Array<Stored> = []
  for (let from = 1; messages.length < max; ) {
    const some = yield* following("log", subject, { from, limit: Math.min(max, readAtOnce) })
    messages.push(...some.filter(({ seq }) => !gone?.has(seq)))
    if (some.length === 0) return { messages, isPart: false }
    from = some.at(-1)!.seq + 1
  }
  return { messages, isPart: true }
})

/** The subjects of all facts that LOG may have about a message. */
export const subjectsAbout = ({ seq, subject }: Pick<Stored, "seq" | "subject">) =>
  parseSubscription(subject) === undefined
    ? [subjects.rejected(seq)]
    : [subjects.rejected(seq), subjects.taken(seq)]

/**
 * Which commands the projector rejected, and what was another user's when it folded them. `about`:
 * these facts, by the sequence of the command.
 */
export const factsAmong = Effect.fnUntraced(function* (
  messages: ReadonlyArray<Past & Pick<Stored, "subject">>
) {
  const stored = yield* (yield* EventLog).lastOf("log", messages.flatMap(subjectsAbout))
  const rejected = new Set<number>()
  const marks = new Map<number, Marks>()
  const about = new Map<number, Array<Stored>>()
  for (const fact of stored) {
    const { message } = fact
    if (message.type !== "command.rejected" && message.type !== "subscription.taken") continue
    if (message.type === "command.rejected") rejected.add(message.command)
    else marks.set(message.command, message.taken)
    about.set(message.command, [...(about.get(message.command) ?? []), fact])
  }
  return { rejected, marks, about }
})
