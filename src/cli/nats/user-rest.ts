// The rest of users after their erasure, and the commands that end it: grants, scheduled broadcasts
// and drafts. A restored backup has them again.
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { scheduledBroadcasts } from "#broadcasts/states.ts"
import { publisherOf } from "#domain/broadcast.ts"
import { type Drafts, formIn } from "#domain/draft.ts"
import { type Draft, draftIn, draftsOf } from "#gateway/drafts/form.ts"
import { grantsAt } from "#history/past.ts"
import type { User } from "#identity/identity.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters } from "#streams/subjects.ts"
import { decodeToken } from "#streams/tokens.ts"
import { shellWord } from "../terminal/output.ts"
import { ownUsers } from "./users.ts"

/** A right of a user by a grant. */
interface Grant {
  readonly channel: string
  readonly right: "publish" | "register"
  /** The user, as the grant names them. */
  readonly principal: string
}

/** A thing that an erasure leaves, and how that ends. */
export interface Rest {
  readonly what: string
  /** A command, or a time. */
  readonly end: string
}

export const shownRest = {
  heading: ["STAYS", "ENDS BY"],
  cellsOf: ({ end, what }: Rest) => [what, end],
  none: ""
}

/**
 * Whether an id is that of one of these users. Undefined: some are known by their pseudonym alone,
 * and the secret that makes it of an id is not here.
 */
const namedAmong = Effect.fnUntraced(function* (users: ReadonlyArray<User>) {
  const ids = new Set(users.map(({ id }) => id))
  const tokens = new Set(users.map(({ user }) => user))
  if (users.every(({ id, user }) => id !== user)) return (id: string) => ids.has(id)
  const own = Option.getOrUndefined(yield* Effect.option(ownUsers))
  return own && ((id: string) => tokens.has(own.named(id).user))
})

type IsNamed = (id: string) => boolean

/** The rights by grants that name users, up to a message of LOG; undefined: see `namedAmong`. */
export const grantsNaming = Effect.fnUntraced(function* (users: ReadonlyArray<User>, seq: number) {
  const isNamed = yield* namedAmong(users)
  return isNamed === undefined ? undefined : yield* grantsOf(isNamed, seq)
})

const grantsOf = Effect.fnUntraced(function* (isNamed: IsNamed, seq: number) {
  return [...(yield* grantsAt(undefined, { seq }))].flatMap(
    ([token, { principals, registrars }]) => {
      const channel = decodeToken(token) ?? token
      const of = (right: Grant["right"], all: ReadonlyArray<string>) =>
        all.filter(isNamed).map((principal): Grant => ({ channel, right, principal }))
      return [...of("publish", principals), ...of("register", registrars)]
    }
  )
})

/** The rest of users after their erasure, but for what goes with time. */
export const restOf = Effect.fnUntraced(function* (users: ReadonlyArray<User>, seq: number) {
  if (users.length === 0) return []
  const isNamed = yield* namedAmong(users)
  const drafts = yield* draftsLeft(users, isNamed ?? (() => false))
  if (isNamed === undefined) return [unknownRest, ...drafts]
  const grants = yield* grantsOf(isNamed, seq)
  return [...grants.map(grantLeft), ...(yield* scheduledLeft(isNamed)), ...drafts]
})

const unknownRest: Rest = {
  what:
    "grants, scheduled broadcasts and drafts of others: not known of a pseudonym without the " +
    "service's user id secret here",
  end: "see bellcast permissions list, broadcast list and draft list"
}

const grantLeft = ({ channel, principal, right }: Grant): Rest => {
  const flag = right === "register" ? " --register" : ""
  const place = `${shellWord(channel)} ${shellWord(principal)}`
  return {
    what: `grant: ${right} on ${channel}`,
    end: `bellcast permissions revoke ${place}${flag}`
  }
}

const scheduledLeft = Effect.fnUntraced(function* (isNamed: IsNamed) {
  return (yield* scheduledBroadcasts)
    .filter(({ source, stored: { header } }) => isNamed(publisherOf(source, header) ?? ""))
    .map(
      ({ stored: { seq } }): Rest => ({
        what: `broadcast ${seq} of the user, scheduled`,
        end: `bellcast broadcast cancel ${seq}`
      })
    )
})

/** Drafts of the users' own, and those of others that name one. */
const draftsLeft = Effect.fnUntraced(function* (users: ReadonlyArray<User>, isNamed: IsNamed) {
  const last = new Map<string, Draft | undefined>()
  yield* (yield* EventLog).scan("log", [filters.drafts], (stored) => {
    last.set(stored.subject, draftIn(stored))
  })
  const found = [...last.values()].filter((draft) => draft !== undefined)
  const authors = new Set(users.map(({ user }) => user))
  const names = new Set(users.flatMap(({ id, user }) => [id, `pseudonym:${user}`]))
  const of = found.filter(({ content: { to }, user: author }) => {
    const named = [...(to?.users ?? []), ...(to?.except_users ?? [])]
    return authors.has(author) || named.some((name) => names.has(name) || isNamed(name))
  })
  // LOG has the last form of a draft that is over until the projector deletes it.
  const left = yield* Effect.filter(of, (draft) =>
    Effect.map(draftsOf(draft.user), (index) => index !== undefined && isIn(index, draft))
  )
  return left.map(
    (draft): Rest => ({
      what: `draft ${draft.id} ${authors.has(draft.user) ? "of the user" : "that names the user"}`,
      end: `bellcast draft delete ${draft.id}`
    })
  )
})

const isIn = (index: Drafts, { id, seq }: Draft): boolean => formIn(index, id) === seq
