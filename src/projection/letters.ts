// Letters to an erased user alone: broadcasts and drafts that name this user and nobody
// else, and the user's logins. One with other recipients stays.
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { changeState, isFinal, originIn, type Standing, standingOf } from "#broadcasts/state.ts"
import { readRecipients } from "#broadcasts/whole-broadcast.ts"
import { broadcastIdIn, redrivesHeader } from "#domain/broadcast.ts"
import { isInWork } from "#history/broadcasts.ts"
import { identitySettings, policyKinds } from "#identity/settings.ts"
import { type NatsUnavailable, unavailable } from "#nats/connection/errors.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { parsedValue, scanStored } from "#nats/kv/entries.ts"
import type { SessionEntry, VerificationEntry } from "#nats/kv/values.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { directToken, type UserToken } from "#streams/tokens.ts"
import type { Sets } from "./sets.ts"

/** Whose letters are looked for: the pseudonym, and the ids in the messages of the user. */
export interface Addressee {
  readonly user: UserToken
  /** None, where LOG has no message of the user. */
  readonly ids: ReadonlySet<string>
  /** Only what was stored before this sequence. */
  readonly before: number
}

/**
 * The pseudonym of an id; undefined: this process does not know the user id secret. Drafts and
 * logins have ids, and of a user without a message in LOG an erasure knows the pseudonym alone.
 */
export const PseudonymOf = Context.Reference<(id: string) => UserToken | undefined>(
  "bellcast/projection/PseudonymOf",
  { defaultValue: () => () => undefined }
)

/** All that is for an addressee alone. */
interface Found {
  readonly letters: Array<Stored>
  readonly drafts: Array<Stored>
  /** Revisions of entries of the bucket `cache`. */
  readonly logins: Array<number>
}

/** One reading for several addressees. `found`: undefined until it is done. */
interface Look {
  readonly addressees: Array<Addressee>
  found: ReadonlyMap<Addressee, Found> | undefined
}

const newLook = (): Look => ({ addressees: [], found: undefined })

/** Between two looks whether a cancelled broadcast is finished. */
const lookMillis = 500
/** A letter of which WORK has nothing so long after its cancellation is deleted. */
export const EndMillisMax: Context.Reference<number> = Context.Reference<number>(
  "bellcast/projection/EndMillisMax",
  { defaultValue: () => 60_000 }
)

/**
 * A function that ends the drafts of a user, removes the logins, and returns an effect that ends
 * and deletes the letters: that takes as long as their pushes. A look reads all broadcasts to
 * users, all drafts and the bucket `cache`: so there is one at a time, and the next one is for all
 * who wait for it.
 */
export const makeDeleteLetters = (sets: Sets) => {
  const oneLook = Semaphore.makeUnsafe(1).withPermit
  let next = newLook()
  const take = Effect.fnUntraced(function* (look: Look) {
    if (look.found !== undefined) return look.found
    if (next === look) next = newLook()
    look.found = yield* lookFor(sets, look.addressees)
    return look.found
  })
  return Effect.fnUntraced(function* (addressee: Addressee) {
    const look = next
    look.addressees.push(addressee)
    const { drafts, letters, logins } = (yield* oneLook(take(look))).get(addressee)!
    yield* endDrafts(sets, drafts)
    const { remove: removeEntry } = yield* Buckets
    yield* Effect.forEach(logins, (revision) => removeEntry("cache", revision), { discard: true })
    return Effect.forEach(letters, (letter) => remove(sets, letter), { discard: true })
  })
}

const lookFor = Effect.fnUntraced(function* (sets: Sets, all: ReadonlyArray<Addressee>) {
  const found = new Map(
    all.map((each): [Addressee, Found] => [each, { letters: [], drafts: [], logins: [] }])
  )
  yield* findLetters(sets, found)
  yield* findDrafts(sets, found)
  yield* findLogins(found)
  return found
})

type Finds = ReadonlyMap<Addressee, Found>

const findLetters = Effect.fnUntraced(function* ({ log }: Sets, found: Finds) {
  const direct = [subjects.broadcast("*", directToken)]
  yield* log.scan("log", direct, (stored) => {
    // Most of them name none of these users, and are not decoded.
    const named = [...found].filter(
      ([{ before, user }]) => stored.seq < before && stored.text.includes(user)
    )
    if (named.length === 0) return
    return Effect.map(readRecipients(log, stored), (to) => {
      const [only, ...others] = to?.users ?? []
      if (others.length > 0 || to?.channels.length !== 0) return
      for (const [{ user }, { letters }] of named) if (user === only) letters.push(stored)
    })
  })
})

/** Begins the name of a user of a draft that is no id. */
const byPseudonym = "pseudonym:"

const findDrafts = Effect.fnUntraced(function* ({ log }: Sets, found: Finds) {
  const pseudonymOf = yield* PseudonymOf
  yield* log.scan("log", [filters.drafts], (stored) => {
    const name = onlyUserOf(stored)
    if (name === undefined) return
    const user = name.startsWith(byPseudonym) ? name.slice(byPseudonym.length) : pseudonymOf(name)
    for (const [addressee, { drafts }] of found)
      if (addressee.user === user || addressee.ids.has(name)) drafts.push(stored)
  })
})

/** The user whom a draft names alone; undefined: it names others, or the message is none. */
const onlyUserOf = ({ message }: Stored): string | undefined => {
  if (message.type !== "draft.put") return undefined
  const to = message.draft["to"] as { channels?: ReadonlyArray<unknown>; users?: unknown }
  const users: ReadonlyArray<unknown> = Array.isArray(to?.users) ? to.users : []
  return users.length === 1 && (to.channels ?? []).length === 0 ? String(users[0]) : undefined
}

/** Finds verified credentials and sessions: their keys are hashes of tokens. */
const findLogins = Effect.fnUntraced(function* (found: Finds) {
  const isTheirs = yield* loginsOf([...found.keys()])
  yield* scanStored("cache", (key, text, revision) => {
    if (!/^(verification|session)\./.test(key)) return
    const login = parsedValue(text) as VerificationEntry | SessionEntry | undefined
    if (login === undefined) return
    const { user } = "known" in login ? login.known : login
    for (const addressee of isTheirs(user)) found.get(addressee)!.logins.push(revision)
  })
})

/** A function that returns those whose login has a name: an id without its policy. */
const loginsOf = Effect.fnUntraced(function* (all: ReadonlyArray<Addressee>) {
  const pseudonymOf = yield* PseudonymOf
  const set = yield* Effect.orElseSucceed(identitySettings.authPolicies, () => [])
  // A process without the role `gateway` may lack the setting.
  const policies = set.length > 0 ? set.map(({ name }) => name) : policyKinds
  const unknown = all.filter(({ ids }) => ids.size === 0)
  const named = all.map((addressee) => {
    const names = [...addressee.ids].map((id) => id.slice(id.indexOf(":") + 1))
    return { addressee, names: new Set([...addressee.ids, ...names]) }
  })
  return (name: string): ReadonlyArray<Addressee> => {
    const known = named.filter(({ names }) => names.has(name)).map(({ addressee }) => addressee)
    if (unknown.length === 0) return known
    const users = policies.map((policy) => pseudonymOf(`${policy}:${name}`))
    return [...known, ...unknown.filter(({ user }) => users.includes(user))]
  }
})

const isOver = (standing: Standing): boolean =>
  isFinal(standing) ||
  // One that was to start later and never did has no pushes that could end.
  (standing.state === "cancelled" &&
    standing.schedule !== undefined &&
    standing.schedule.startedAt === undefined)

/**
 * Deletes a broadcast and its redrives, which have its payload, once all their pushes have an end.
 * Final counts, of nobody, stay.
 */
const remove: (
  sets: Sets,
  letter: Stored
) => Effect.Effect<void, NatsUnavailable, Buckets | EventLog> = Effect.fnUntraced(function* (
  sets: Sets,
  letter: Stored
) {
  // Again, as one may be stored until the broadcast is gone.
  for (let isGone = false; ; isGone = true) {
    const redrives = yield* redrivesOf(sets, letter.seq)
    yield* Effect.forEach(redrives, (each) => remove(sets, each), { discard: true })
    if (isGone) return
    yield* removeAlone(sets, letter)
  }
})

const redrivesOf = Effect.fnUntraced(function* ({ log }: Sets, broadcast: number) {
  const found: Array<Stored> = []
  yield* log.scan("log", [subjects.broadcast("redrive", directToken)], (stored) => {
    if (broadcastIdIn(stored.header(redrivesHeader) ?? "") === broadcast) found.push(stored)
  })
  return found
})

/** Cancels a letter, unless it is over, and waits until each of its pushes has an end. */
const end = Effect.fnUntraced(function* (letter: Stored) {
  const origin = originIn(letter)!
  let standing = yield* standingOf(origin)
  if (!isOver(standing)) {
    const at = yield* Clock.currentTimeMillis
    yield* changeState(origin, "cancelled", "erasure", at).pipe(
      Effect.catchTag("AppendConflict", (err) => Effect.fail(unavailable("cancel")(err)))
    )
    standing = yield* standingOf(origin)
  }
  const endMillisMax = yield* EndMillisMax
  for (let waited = 0; !isOver(standing); waited += lookMillis) {
    if (waited >= endMillisMax) {
      // WORK has nothing of it: nobody has begun it, or its life is over.
      if (!(yield* isInWork(directToken, letter.seq))) return standing
      return yield* unavailable("erase")(new Error(`broadcast ${letter.seq} does not end`))
    }
    yield* Effect.sleep(lookMillis)
    standing = yield* standingOf(origin)
  }
  return standing
})

const removeAlone = Effect.fnUntraced(function* ({ log }: Sets, letter: Stored) {
  if ((yield* log.at("log", letter.seq)) === undefined) return
  const standing = yield* end(letter)
  const changes: Array<Stored> = []
  yield* log.replay("log", [subjects.state(letter.seq)], (stored) => void changes.push(stored))
  // A change that this replica does not have yet would stay.
  if (changes.at(-1)?.seq !== standing.change?.seq)
    return yield* unavailable("erase")(new Error("a replica is behind"))
  // The last change says of nobody but its author. A process that is not connected now would never
  // learn of it, and start the broadcast again and again. The trimmer deletes it.
  if (changes.at(-1)?.message.type !== "broadcast.changed") changes.pop()
  // The broadcast goes last: a later look finds the rest by it.
  for (const { message, seq } of [...changes, letter]) {
    const parts = "parts" in message ? (message.parts ?? []) : []
    for (const part of [...parts, seq]) yield* log.remove(part)
  }
})

/** Ends drafts to the user alone: the projector then deletes their messages. */
const endDrafts = Effect.fnUntraced(function* ({ log }: Sets, found: ReadonlyArray<Stored>) {
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
