// The users of the simulation of years, and what they do by its clock.
import type { Message } from "#domain/messages/table.ts"
import {
  type ChannelRegistrations,
  emptyChannel,
  evolveChannel,
  evolveRegistration,
  type Registration,
  type RegistrationCommand
} from "#domain/registration.ts"
import { subjects } from "#streams/subjects.ts"
import { type ChannelToken, channelsToken, channelToken } from "#streams/tokens.ts"
import { news, SiteLog, tokenAt } from "./years-log.ts"
import type { Kind, Samples } from "./years-sizes.ts"

export const dayMillis = 86_400_000
const daySeconds = 86_400
const renewalDays = 30

/** The counts of a channel without users. */
const closed = channelToken("news-more")

export interface Size {
  readonly users: number
  readonly days: number
  /** Of the users who go in a day, the share whose browser is gone without a word. */
  readonly goneShare: number
  /** Milliseconds since the epoch. */
  readonly begin: number
}

/** Joined in a day, of all users: as many go. */
const newShare = 0.01

/** The same numbers in each run: a generator of 32 bits (mulberry32). */
const makeRandom = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
}

/** The fate of a user who went: the place of one who is there is 0 or more. */
const [leftMark, goneMark] = [-1, -2]

export type Fate = "live" | "left" | "gone"

type Act = (second: number) => void
interface Timed {
  readonly second: number
  readonly act: Act
}

/** The users of a site and all that they do, which is the same in each run. */
export class Site {
  readonly log: SiteLog
  /** The counts of the channel of all users. */
  counts: ChannelRegistrations = emptyChannel
  day = 0
  readonly #size: Size
  readonly #samples: Samples
  readonly #random = makeRandom(1)
  readonly #live: Array<number> = []
  /** By user: the place in `#live`, or what became of the user. */
  readonly #place: Int32Array
  readonly #endpoint: Int32Array
  readonly #generation: Int32Array
  readonly #since: Int32Array
  /** By the day of the month on which they renew. */
  readonly #renewing: Array<Array<number>> = Array.from({ length: renewalDays }, () => [])
  #users = 0

  constructor(size: Size, samples: Samples) {
    const users = Math.ceil(size.users * (1 + newShare * (size.days + 1)))
    const changes = size.days * size.users * (4 * newShare + 1 / renewalDays)
    this.log = new SiteLog(Math.ceil(2 * size.users + changes + 20 * size.days), users, size.begin)
    this.#size = size
    this.#samples = samples
    this.#place = new Int32Array(users)
    this.#endpoint = new Int32Array(users)
    this.#generation = new Int32Array(users)
    this.#since = new Int32Array(users)
  }

  get users(): number {
    return this.#live.length
  }

  fateOf(user: number): Fate {
    const place = this.#place[user]!
    if (place >= 0) return "live"
    return place === goneMark ? "gone" : "left"
  }

  registrationOf(user: number): Registration {
    const since = this.#since[user]!
    const on = since > 0
    return { v: 1, seq: Math.abs(since), since: Math.abs(since), on, was: 0 }
  }

  /** All that happens on the next day. */
  nextDay(): void {
    const begin = this.day * daySeconds
    const acts = this.#changes()
    const timed = this.#timed(begin)
    for (const [i, act] of acts.entries()) {
      const second = begin + Math.floor((i * daySeconds) / acts.length)
      while (timed.length > 0 && timed[0]!.second <= second) {
        const next = timed.shift()!
        next.act(next.second)
      }
      act(second)
    }
    for (const { act, second } of timed) act(second)
    this.day++
  }

  /** So many of all users, as a share a day, on this day. */
  #count(share: number): number {
    const perDay = this.#size.users * share
    const upTo = (day: number) => Math.floor(day * perDay + 1e-6)
    return this.day === 0 ? 0 : upTo(this.day + 1) - upTo(this.day)
  }

  /** Commands of users on this day, at any time. */
  #changes(): Array<Act> {
    const { goneShare, users } = this.#size
    const isFirst = this.day === 0
    const due = this.#renewing[this.day % renewalDays]!
    const renewing = isFirst ? [] : due.filter((user) => this.#place[user]! >= 0)
    this.#renewing[this.day % renewalDays] = renewing
    const joining = isFirst ? users : this.#count(newShare)
    const leaving = this.#count(newShare * (1 - goneShare))
    const acts: Array<Act> = [
      ...Array.from({ length: joining }, () => (second: number) => this.#join(second)),
      ...Array.from({ length: leaving }, () => (second: number) => this.#leave(second)),
      ...renewing.map((user) => (second: number) => this.#renew(user, second))
    ]
    this.#shuffle(acts)
    return acts
  }

  #shuffle(all: Array<Act>) {
    for (let i = all.length - 1; i > 0; i--) {
      const j = Math.floor(this.#random() * (i + 1))
      ;[all[i], all[j]] = [all[j]!, all[i]!]
    }
  }

  #join(second: number) {
    const user = this.#users++
    this.#generation[user] = this.log.append("subscription.put", user, second)
    this.#register(user, second, true)
    this.#place[user] = this.#live.push(user) - 1
    const day = this.day === 0 ? Math.floor(this.#random() * renewalDays) : this.day % renewalDays
    this.#renewing[day]!.push(user)
  }

  #renew(user: number, second: number) {
    if (this.#place[user]! < 0) return
    const n = ++this.#endpoint[user]!
    this.#generation[user] = this.log.append("subscription.renewed", user, second, n)
  }

  #leave(second: number) {
    const user = this.#take(leftMark)
    if (user === undefined) return
    this.log.append("subscription.delete", user, second, this.#endpoint[user]!)
    this.#register(user, second, false)
  }

  /** A push service says that a browser is gone. Nobody ends the registration of its user. */
  #end(second: number) {
    const user = this.#take(goneMark)
    if (user !== undefined)
      this.log.append("subscription.gone", user, second, this.#generation[user]!)
  }

  /** Takes any user from those who live. */
  #take(mark: number): number | undefined {
    const place = Math.floor(this.#random() * this.#live.length)
    const user = this.#live[place]
    const last = this.#live.pop()
    if (user === undefined || last === undefined) return undefined
    if (last !== user) {
      this.#live[place] = last
      this.#place[last] = place
    }
    this.#place[user] = mark
    return user
  }

  #register(user: number, second: number, on: boolean) {
    const kind = on ? "registration.put" : "registration.delete"
    const before = on ? undefined : this.registrationOf(user)
    const seq = this.log.append(kind, user, second)
    const command = this.log.stored(seq).message as RegistrationCommand
    const registration = evolveRegistration(before, command, seq)
    this.counts = evolveChannel(this.counts, registration, command, seq)
    this.#since[user] = on ? seq : -seq
  }

  /** Broadcasts, what push services then say, and what people do, in the order of their times. */
  #timed(begin: number): Array<Timed> {
    const isFirst = this.day % renewalDays === 0
    const hour = (n: number) => begin + n * 3_600
    const gone = this.#count(newShare * this.#size.goneShare)
    const permit = { second: hour(10), act: (at: number) => this.#permit(at) }
    return [
      { second: hour(8), act: (at) => (isFirst ? this.#several(at) : this.#broadcast(at)) },
      { second: hour(9), act: (at) => this.#reject(at) },
      ...(isFirst ? [permit] : []),
      { second: hour(18), act: (at) => this.#schedule(at) },
      ...Array.from({ length: gone }, () => ({
        second: hour(18),
        act: (at: number) => this.#end(at)
      }))
    ]
  }

  #append(kind: Kind, subject: string, second: number, more: object = {}): number {
    const { message } = this.#samples.get(kind)!
    return this.log.appendOther(subject, { ...message, ...more } as Message, second)
  }

  #finish(channel: ChannelToken, broadcast: number, second: number) {
    const at = { broadcast, seq: broadcast }
    this.#append("broadcast.finished", subjects.finished(channel, broadcast), second, at)
  }

  #broadcast(second: number) {
    const broadcast = this.#append("broadcast", subjects.broadcast("rest", news), second)
    this.#finish(news, broadcast, second)
  }

  /** To several channels, in so many languages that it has a part. */
  #several(second: number) {
    const part = this.#append("direct.part", subjects.part, second)
    const subject = subjects.broadcast("rest", channelsToken)
    const broadcast = this.#append("direct", subject, second, { parts: [part] })
    this.#finish(channelsToken, broadcast, second)
  }

  #schedule(second: number) {
    const broadcast = this.#append("broadcast", subjects.broadcast("rest", news), second)
    const of = { broadcast }
    this.#append("broadcast.scheduled", subjects.state(broadcast), second, of)
    this.#append("broadcast.started", subjects.state(broadcast), second, of)
    this.#finish(news, broadcast, second)
  }

  /** A user has as many registrations as may be. */
  #reject(second: number) {
    const subject = subjects.registration(closed, tokenAt(this.#live[0]!))
    const command = this.#append("registration.rejected", subject, second)
    const of = { command, subject }
    this.#append("command.rejected", subjects.rejected(command), second, of)
  }

  #permit(second: number) {
    const [id, hash] = [30, 43].map((length) => `${this.day}-`.padEnd(length, "u"))
    const principal = `signed:${id}`
    this.#append("publisher.put", subjects.publisher(news), second, { principal })
    this.#append("token.put", subjects.token(`billing-${this.day}`), second, { hash })
  }
}
