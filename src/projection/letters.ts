// Letters to an erased user alone: broadcasts and drafts that name this user and nobody
// else, and the user's logins. One with other recipients stays.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { changeState, isFinal, originIn, type Standing, standingOf } from "#broadcasts/state.ts"
import { readRecipients } from "#broadcasts/whole-broadcast.ts"
import { unavailable } from "#nats/connection/errors.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { scanStored } from "#nats/kv/entries.ts"
import type { SessionEntry, VerificationEntry } from "#nats/kv/values.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { directToken, type UserToken } from "#streams/tokens.ts"
import type { Sets } from "./sets.ts"

/** Whose letters are looked for: the pseudonym, and the ids in the messages of the user. */
export interface Addressee {
  readonly user: UserToken
  readonly ids: ReadonlySet<string>
  /** Only what was stored before this sequence. */
  readonly before: number
}

/** A look reads all broadcasts to users in LOG: one at a time bounds what erasures read. */
const oneLook = Semaphore.makeUnsafe(1).withPermit

/** Between two looks whether a cancelled broadcast is finished. */
const lookMillis = 500
const endMillisMax = 60_000
/** Changes of the state of one broadcast. */
const changesMax = 500

/** Ends and deletes the letters and drafts of a user, and removes the logins. */
export const deleteLetters = (sets: Sets, addressee: Addressee) =>
  oneLook(
    Effect.gen(function* () {
      yield* Effect.forEach(yield* lettersTo(sets, addressee), (letter) => remove(sets, letter), {
        discard: true
      })
      yield* endDrafts(sets, addressee)
      yield* removeLogins(addressee)
    })
  )

const lettersTo = Effect.fnUntraced(function* ({ log }: Sets, { before, user }: Addressee) {
  const letters: Array<Stored> = []
  const direct = [subjects.broadcast("*", directToken)]
  yield* log.scan("log", direct, (stored) => {
    // Most of them do not name the user, and are not decoded.
    if (stored.seq >= before || !stored.text.includes(user)) return
    return Effect.map(readRecipients(log, stored), (to) => {
      const [only, ...others] = to?.users ?? []
      if (only === user && others.length === 0 && to?.channels.length === 0) letters.push(stored)
    })
  })
  return letters
})

const isOver = (standing: Standing): boolean =>
  isFinal(standing) ||
  // A broadcast that never started has no pushes that could end.
  (standing.state === "cancelled" && standing.schedule?.startedAt === undefined)

/** Deletes a broadcast once all its pushes have an end. Its final counts, of nobody, stay. */
const remove = Effect.fnUntraced(function* ({ log }: Sets, letter: Stored) {
  const origin = originIn(letter)!
  if (!isOver(yield* standingOf(origin))) {
    const at = yield* Clock.currentTimeMillis
    yield* changeState(origin, "cancelled", "erasure", at).pipe(
      Effect.catchTag("AppendConflict", (err) => Effect.fail(unavailable("cancel")(err)))
    )
  }
  for (let waited = 0; !isOver(yield* standingOf(origin)); waited += lookMillis) {
    if (waited >= endMillisMax)
      return yield* unavailable("erase")(new Error(`broadcast ${letter.seq} does not end`))
    yield* Effect.sleep(lookMillis)
  }
  const state = subjects.state(letter.seq)
  const changes = yield* log.following("log", state, { from: 1, limit: changesMax })
  // The broadcast goes last: a later look finds the rest by it.
  for (const { message, seq } of [...changes, letter]) {
    const parts = "parts" in message ? (message.parts ?? []) : []
    for (const part of [...parts, seq]) yield* log.remove(part)
  }
})

/** Ends drafts to the user alone: the projector then deletes their messages. */
const endDrafts = Effect.fnUntraced(function* ({ log }: Sets, { ids, user }: Addressee) {
  const names = new Set([...ids, `pseudonym:${user}`])
  const found: Array<Stored> = []
  yield* log.scan("log", [filters.drafts], (stored) => {
    const { message } = stored
    if (message.type !== "draft.put") return
    const to = message.draft["to"] as { channels?: ReadonlyArray<unknown>; users?: unknown }
    const users: ReadonlyArray<unknown> = Array.isArray(to?.users) ? to.users : []
    const isAlone = users.length === 1 && (to.channels ?? []).length === 0
    if (isAlone && names.has(String(users[0]))) found.push(stored)
  })
  const now = yield* Clock.currentTimeMillis
  yield* Effect.forEach(found, ({ message, seq: expect, subject }) => {
    if (message.type !== "draft.put") return Effect.void
    const body = { user: message.user, at: Math.max(now, message.at + 1) }
    // Another form came first: that is stored since the erasure.
    return log
      .append("log", { subject, type: "draft.delete", body, expect })
      .pipe(Effect.catchTag("AppendConflict", () => Effect.void))
  })
})

/** Removes verified credentials and sessions: their keys are hashes of tokens. */
const removeLogins = Effect.fnUntraced(function* ({ ids }: Addressee) {
  const names = new Set([...ids].flatMap((id) => [id, id.slice(id.indexOf(":") + 1)]))
  const revisions: Array<number> = []
  yield* scanStored("cache", (key, text, revision) => {
    if (!/^(verification|session)\./.test(key) || text === "") return
    const login = JSON.parse(text) as VerificationEntry | SessionEntry
    const { user } = "known" in login ? login.known : login
    if (names.has(user)) revisions.push(revision)
  })
  const { remove: removeEntry } = yield* Buckets
  yield* Effect.forEach(revisions, (revision) => removeEntry("cache", revision), { discard: true })
})
