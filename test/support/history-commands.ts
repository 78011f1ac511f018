// The commands of the history: registrations, subscriptions and publishers, the same on every run.
import { Effect } from "effect"
import fc from "fast-check"
import { type DraftForm, draftHeaders } from "#domain/draft.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken, type UserToken } from "#streams/tokens.ts"

export const userOf = (n: number) => Buffer.alloc(16, n + 1).toString("base64url") as UserToken
export const subscriptionOf = (n: number) => n.toString(16).padStart(2, "0").repeat(32)
export const channels = ["news", "wetter süd", "\u{1f514}"].map(channelToken)

const wish = fc.record({
  what: fc.constantFrom(
    "register",
    "register",
    "register",
    "unregister",
    "put",
    "put",
    "delete",
    "gone",
    "struck",
    "struck",
    "suspended",
    "cleared",
    "matched",
    "malformed"
  ),
  user: fc.nat(11),
  channel: fc.nat(channels.length - 1),
  subscription: fc.nat(2),
  at: fc.nat(1_000)
})
type Wish = typeof wish extends fc.Arbitrary<infer A> ? A : never
type Log = EventLog["Service"]

const appendRegistration = (log: Log, { at, channel, user, what }: Wish) => {
  const subject = subjects.registration(channels[channel]!, userOf(user))
  const name = `user ${user}`
  if (what === "unregister")
    return log.append("log", {
      subject,
      type: "registration.delete",
      body: { user: name, at }
    })
  // Some users may hold two: the third is rejected.
  const limit = user % 3 === 0 ? { registrationsMax: 2 } : {}
  return log.append("log", {
    subject,
    type: "registration.put",
    body: { user: name, at, ...limit }
  })
}

/** What a push service makes of a subscription, of the generation that was put last. */
const appendEvidence = (log: Log, { at, subscription, user, what }: Wish, generation: number) => {
  const subject = subjects.subscription(userOf(user))
  const of = { id: subscriptionOf(subscription), generation, at }
  const evidence = { ...of, broadcast: 1, cause: "unknown-host", worker: "w" } as const
  if (what === "gone")
    return log.append("log", {
      subject,
      type: "subscription.gone",
      body: { id: of.id, generation, broadcast: 1, status: 410, cause: "gone", at }
    })
  if (what === "struck")
    return log.append("log", {
      subject,
      type: "subscription.struck",
      body: { ...evidence, strike: 1 + (at % 2) }
    })
  if (what === "suspended")
    return log.append("log", { subject, type: "subscription.suspended", body: evidence })
  if (what === "cleared")
    return log.append("log", {
      subject,
      type: "subscription.cleared",
      body: { ...of, by: "push" }
    })
  return log.append("log", {
    subject,
    type: "subscription.matched",
    body: { ...of, vapidKey: `key ${at}` }
  })
}

/** What a user does with a subscription; `i` makes every command another one. */
const appendSubscription = (log: Log, { subscription, user, what }: Wish, i: number) => {
  const subject = subjects.subscription(userOf(user))
  const id = subscriptionOf(subscription)
  const name = `user ${user}`
  if (what === "delete")
    return log.append("log", {
      subject,
      type: "subscription.delete",
      body: { user: name, removed: [{ id, lastModified: 2_000 + i }] }
    })
  const type = "subscription.put"
  if (what === "malformed")
    return log.append("log", { subject, type, body: { user: name } as never })
  // Some endpoints are stored by several users, not always with the same keys.
  const path = i % 3 === 0 ? `shared/${subscription}` : `${user}/${i}?ü=${subscription}`
  const data = {
    endpoint: `https://push.example.com/${path}`,
    keys: { auth: i % 9 === 0 ? "auth" : "a", p256dh: "p" },
    z: { "2": [], "10": null }
  }
  return log.append("log", {
    subject,
    type,
    body: { user: name, id, data, lastModified: 2_000 + i }
  })
}

/** Grants, grants again, revokes, and a rejected grant. */
const appendPublishers = Effect.gen(function* () {
  const log = yield* EventLog
  const subject = subjects.publisher(channels[0]!)
  for (const principal of [
    "basicauth:b",
    "basicauth:a",
    "basicauth:c",
    "basicauth:b",
    "no principal"
  ])
    yield* log.append("log", { subject, type: "publisher.put", body: { principal, at: 1 } })
  yield* log.append("log", {
    subject,
    type: "publisher.delete",
    body: { principal: "basicauth:c", at: 2 }
  })
})

/**
 * Makes two tokens, the second with another hash for the name, revokes the first, and makes it
 * again in vain. Returns the sequence of the last command.
 */
const appendTokens = Effect.gen(function* () {
  const log = yield* EventLog
  const subject = subjects.token("billing")
  const put = (letter: string) =>
    log.append("log", {
      subject,
      type: "token.put",
      body: { hash: letter.repeat(43), channels: ["news*"], expiresAt: 9, at: 1 }
    })
  yield* put("a")
  yield* log.append("log", {
    subject,
    type: "token.delete",
    body: { hash: "a".repeat(43), at: 2 }
  })
  yield* put("b")
  return (yield* put("a")).seq
})

/**
 * Stores drafts of two authors, some of them several times, deletes one, publishes one, and has a
 * message that no author can have stored.
 */
const appendDrafts = Effect.gen(function* () {
  const log = yield* EventLog
  const put = (id: string, n: number) => {
    const [author, user] = [`user ${n}`, userOf(n)]
    const draft = { data: { z: 1, "2": null }, to: { channels: ["news"] } }
    const body = { author, user, changedBy: author, at: 1, draft }
    return log.append("log", { subject: subjects.draft(id), type: "draft.put", body })
  }
  yield* put("a", 1)
  yield* put("b", 1)
  const { seq } = yield* put("c", 1)
  yield* put("a", 1)
  yield* put("d", 2)
  yield* log.append("log", {
    subject: subjects.draft("d"),
    type: "draft.delete",
    body: { user: userOf(2), at: 2 }
  })
  yield* put("e", 2)
  const ends = (source: string, form: DraftForm) =>
    log.append("log", {
      subject: subjects.broadcast(source, channels[0]!),
      type: "broadcast",
      body: {},
      headers: draftHeaders(form)
    })
  yield* ends("rest", { user: userOf(1), id: "c", seq })
  // NATS clients may write the header, too.
  yield* ends("billing", { user: userOf(2), id: "e", seq: 9_999 })
  yield* log.append("log", {
    subject: subjects.draft("f"),
    type: "draft.put",
    body: { author: "user 1" } as never
  })
})

/** Appends commands; the same ones on every run. Returns the sequence of the last. */
export const appendCommands = Effect.gen(function* () {
  const log = yield* EventLog
  const puts = new Map<string, number>()
  for (const [i, wished] of fc.sample(wish, { numRuns: 240, seed: 7 }).entries()) {
    const key = `${wished.user}.${subscriptionOf(wished.subscription)}`
    if (wished.what === "register" || wished.what === "unregister")
      yield* appendRegistration(log, wished)
    else if (["put", "delete", "malformed"].includes(wished.what)) {
      const { seq } = yield* appendSubscription(log, wished, i)
      if (wished.what === "put") puts.set(key, seq)
    } else yield* appendEvidence(log, wished, puts.get(key) ?? 0)
  }
  yield* appendPublishers
  yield* appendDrafts
  return yield* appendTokens
})
