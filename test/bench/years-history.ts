// The rest of a simulated LOG: the product's `unneededWith` says which messages go, and reads
// the LOG and the buckets of the simulation instead of those of NATS.
import { Effect, Layer } from "effect"
import { endOfHistory } from "#domain/history.ts"
import { foldListOf } from "#domain/list-history.ts"
import { emptyList, type SubscriptionList } from "#domain/subscription/subscription.ts"
import { unneededWith } from "#history/unneeded.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { keys } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import { news, userIn } from "./years-log.ts"
import type { Fate, Site } from "./years-site.ts"
import type { Kind, Samples } from "./years-sizes.ts"

/** As in src/projection/trim.ts. */
const stepMax = 200
const deletingMax = 2_000

export interface Held {
  messages: number
  bytes: number
}

interface Options {
  /** How long the history is; undefined: nothing goes. */
  readonly days?: number
  /** Users that each simulated one stands for. */
  readonly scale?: number
}

/** A LOG that is trimmed, or not. */
export class History {
  readonly held: Held = { messages: 0, bytes: 0 }
  readonly #site: Site
  readonly #samples: Samples
  readonly #days: number | undefined
  readonly #scale: number
  readonly #removed: Uint8Array
  readonly #services: Layer.Layer<EventLog | Buckets>
  #counted = 0
  #lookedUpTo = 0

  constructor(site: Site, samples: Samples, { days, scale = 1 }: Options = {}) {
    this.#site = site
    this.#samples = samples
    this.#days = days
    this.#scale = scale
    this.#removed = new Uint8Array(days === undefined ? 0 : site.log.messagesMax)
    this.#services = Layer.merge(this.#eventLog(), this.#buckets())
  }

  /** Deletes what is due at the end of a day. `now`: milliseconds since the epoch. */
  async look(now: number): Promise<void> {
    const { log } = this.#site
    for (; this.#counted < log.last; this.#counted++) this.#add(this.held, this.#counted + 1, 1)
    if (this.#days === undefined) return
    const before = endOfHistory(now, this.#days)
    await Effect.runPromise(this.#trim(before).pipe(Effect.provide(this.#services)))
  }

  /** The messages that are left, by their kind and by what became of their user. */
  left(): ReadonlyMap<string, Held> {
    const { log } = this.#site
    const found = new Map<string, Held>()
    for (let seq = 1; seq <= log.last; seq++) {
      if (this.#isRemoved(seq)) continue
      const name = nameOf(log.kindOf(seq), this.#site, log.userOf(seq))
      const held = found.get(name) ?? { messages: 0, bytes: 0 }
      this.#add(held, seq, 1)
      found.set(name, held)
    }
    return found
  }

  /** Adds a message, and the same of the users that its user stands for. */
  #add(held: Held, seq: number, sign: 1 | -1) {
    const { log } = this.#site
    const count = sign * (log.userOf(seq) === undefined ? 1 : this.#scale)
    held.messages += count
    held.bytes += count * this.#samples.get(log.kindOf(seq))!.bytes
  }

  #isRemoved(seq: number): boolean {
    return this.#days !== undefined && this.#removed[seq] === 1
  }

  /** Steps as those of `trimBefore` in src/projection/trim.ts. */
  #trim = Effect.fnUntraced(function* (this: History, before: number) {
    const { log } = this.#site
    const isOld = (seq: number) => seq <= log.last && log.at(seq) < before
    while (isOld(this.#lookedUpTo + 1)) {
      const due = new Set<number>()
      const seen = new Set<string>()
      for (let looked = 0; looked < stepMax && due.size < deletingMax; ) {
        const seq = this.#lookedUpTo + 1
        if (!isOld(seq)) break
        this.#lookedUpTo = seq
        if (this.#isRemoved(seq)) continue
        looked++
        const stored = log.stored(seq)
        if (due.has(seq) || seen.has(stored.subject)) continue
        seen.add(stored.subject)
        for (const each of (yield* unneededWith(stored, before))?.messages ?? []) due.add(each.seq)
      }
      for (const seq of due) this.#remove(seq)
    }
  })

  #remove(seq: number) {
    if (this.#removed[seq] === 1) return
    this.#removed[seq] = 1
    this.#add(this.held, seq, -1)
  }

  #eventLog() {
    const { log } = this.#site
    const stored = (seq: number) => (this.#isRemoved(seq) ? undefined : log.stored(seq))
    const lastOn = (subject: string) => {
      let last: number | undefined
      for (const seq of log.on(subject)) if (!this.#isRemoved(seq)) last = seq
      return last === undefined ? undefined : log.stored(last)
    }
    return Layer.mock(EventLog, {
      cache: () => {},
      at: (_, seq) => Effect.sync(() => stored(seq)),
      last: (stream, subject) =>
        Effect.sync(() => (stream === "work" ? undefined : lastOn(subject))),
      lastOf: (_, all) => Effect.sync(() => all.flatMap((subject) => lastOn(subject) ?? [])),
      following: (stream, filter, { from, limit }) =>
        Effect.sync(() => {
          const found: Array<Stored> = []
          // WORK has nothing of a broadcast that is older than any history.
          if (stream === "work") return found
          for (const seq of log.on(filter)) {
            if (seq < from || this.#isRemoved(seq)) continue
            if (found.push(log.stored(seq)) >= limit) break
          }
          return found
        })
    })
  }

  #listOf(user: UserToken): SubscriptionList {
    const { log } = this.#site
    const left = [...log.on(subjects.subscription(user))].filter((seq) => !this.#isRemoved(seq))
    return left.map((seq) => log.stored(seq)).reduce(foldListOf({ rejected: new Set() }), emptyList)
  }

  /** The entries that `unneededWith` reads: those of the projector's. */
  #buckets() {
    const get = (key: string): object | undefined => {
      const { counts } = this.#site
      if (key === keys.channelRegistrations(news)) return counts
      if (key === keys.channelBegin(news)) return { v: 1, since: counts.since }
      if (!key.includes(".")) return this.#listOf(key as UserToken)
      if (!key.startsWith(`${news}.`)) return undefined
      return this.#site.registrationOf(userIn(key.slice(key.lastIndexOf(".") + 1)))
    }
    return Layer.mock(Buckets, {
      get: ((_: string, key: string) => {
        const value = get(key)
        return Effect.succeed(value && { key, value, revision: 1 })
      }) as unknown as Buckets["Service"]["get"]
    })
  }
}

const fates: Readonly<Record<Fate, string>> = {
  live: "of users who are there",
  left: "of users who left",
  gone: "of users whose browser is gone"
}

const nameOf = (kind: Kind, site: Site, user: number | undefined): string => {
  if (kind === "broadcast.finished") return "final counts of broadcasts"
  if (user === undefined)
    return /^(broadcast|direct)/.test(kind) ? "broadcasts, parts, states" : "grants, tokens, others"
  const what = kind.startsWith("registration.") ? "registrations" : "subscriptions"
  return `${what} ${fates[site.fateOf(user)]}`
}
