// LOG of the simulation of years. Messages of users are numbers in arrays, 21 bytes each, of which
// a message is made when somebody reads it: a year of 100,000 users has 2.5 million. The others,
// some a day, are objects.
import type { Message } from "#domain/messages/table.ts"
import type { RegistrationCommand } from "#domain/registration.ts"
import type { SubscriptionCommand } from "#domain/subscription/command.ts"
import { endpointHash } from "#domain/subscription/owners.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { parseRegistration, parseSubscription, subjects } from "#streams/subjects.ts"
import { channelToken, type UserToken } from "#streams/tokens.ts"
import { endpointOf, type Kind } from "./years-sizes.ts"

/** The channel of all users. */
export const news = channelToken("news-daily")

export const tokenAt = (user: number): UserToken => {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt32BE(user, 12)
  return bytes.toString("base64url") as UserToken
}
export const userIn = (token: string): number => Buffer.from(token, "base64url").readUInt32BE(12)

const nameOf = (user: number) => `basicauth:${String(user).padStart(64, "0")}`
const idAt = (user: number, n: number) => endpointHash(endpointOf(user, n))
const secretAt = (user: number, n: number) => `${user}-${n}-`.padEnd(43, "s")
const keys = { auth: "a".repeat(22), p256dh: "p".repeat(87) }
const vapidKey = "v".repeat(87)

/** The kinds of messages that are numbers. */
const kinds = [
  "subscription.put",
  "subscription.renewed",
  "subscription.delete",
  "subscription.gone",
  "registration.put",
  "registration.delete"
] as const satisfies ReadonlyArray<Kind>
type UserKind = (typeof kinds)[number]
const other = 255

/** All that was ever stored. */
export class SiteLog {
  /** Sequence of the last message. */
  last = 0
  readonly begin: number
  readonly messagesMax: number
  readonly #kind: Uint8Array
  readonly #user: Int32Array
  readonly #second: Int32Array
  /** The number of an endpoint of the user; of a browser that is gone, its generation. */
  readonly #which: Int32Array
  /** The next message of the subject. */
  readonly #next: Int32Array
  /** By subject: two of each user. */
  readonly #first: Int32Array
  readonly #last: Int32Array
  readonly #others = new Map<number, Stored>()
  readonly #bySubject = new Map<string, Array<number>>()
  readonly registrations: Int32Array
  registrationCount = 0

  constructor(messages: number, users: number, begin: number) {
    this.begin = begin
    this.messagesMax = messages
    this.#kind = new Uint8Array(messages)
    this.#user = new Int32Array(messages)
    this.#second = new Int32Array(messages)
    this.#which = new Int32Array(messages)
    this.#next = new Int32Array(messages)
    this.registrations = new Int32Array(messages)
    this.#first = new Int32Array(2 * users)
    this.#last = new Int32Array(2 * users)
  }

  append(kind: UserKind, user: number, second: number, which = 0): number {
    const seq = ++this.last
    this.#kind[seq] = kinds.indexOf(kind)
    this.#user[seq] = user
    this.#second[seq] = second
    this.#which[seq] = which
    const isRegistration = kind.startsWith("registration.")
    const subject = 2 * user + Number(isRegistration)
    const before = this.#last[subject]!
    if (before === 0) this.#first[subject] = seq
    else this.#next[before] = seq
    this.#last[subject] = seq
    if (isRegistration) this.registrations[this.registrationCount++] = seq
    return seq
  }

  appendOther(subject: string, message: Message, second: number): number {
    const seq = ++this.last
    this.#kind[seq] = other
    this.#second[seq] = second
    const stored = { subject, seq, at: this.at(seq), message, text: "", header: () => undefined }
    this.#others.set(seq, stored)
    const same = this.#bySubject.get(subject)
    if (same === undefined) this.#bySubject.set(subject, [seq])
    else same.push(seq)
    return seq
  }

  at(seq: number): number {
    return this.begin + this.#second[seq]! * 1_000
  }

  kindOf(seq: number): Kind {
    const kind = kinds[this.#kind[seq]!]
    if (kind !== undefined) return kind
    const { message } = this.#others.get(seq)!
    if (message.type === "registration.put") return "registration.rejected"
    return message.type as Kind
  }

  /** The user of a message of a user; undefined: it is another one. */
  userOf(seq: number): number | undefined {
    return this.#kind[seq] === other ? undefined : this.#user[seq]!
  }

  stored(seq: number): Stored {
    if (this.#kind[seq] === other) return this.#others.get(seq)!
    const [user, which, at] = [this.#user[seq]!, this.#which[seq]!, this.at(seq)]
    const message = this.#messageOf(kinds[this.#kind[seq]!]!, user, which, at)
    const subject = message.type.startsWith("subscription.")
      ? subjects.subscription(tokenAt(user))
      : subjects.registration(news, tokenAt(user))
    return { subject, seq, at, message, text: "", header: () => undefined }
  }

  #messageOf(
    kind: UserKind,
    user: number,
    which: number,
    at: number
  ): SubscriptionCommand | RegistrationCommand {
    const name = nameOf(user)
    switch (kind) {
      case "subscription.put":
      case "subscription.renewed":
        return {
          type: "subscription.put",
          user: name,
          id: idAt(user, which),
          data: {
            endpoint: endpointOf(user, which),
            keys,
            locale: "en",
            vapid_public_key: vapidKey
          },
          vapidKey,
          ...(kind === "subscription.put"
            ? {}
            : {
                replaces: {
                  id: idAt(user, which - 1),
                  lastModified: at,
                  renewal: secretAt(user, which - 1)
                }
              }),
          renewal: secretAt(user, which),
          lastModified: at + 1
        }
      case "subscription.delete": {
        const removed = [{ id: idAt(user, which), lastModified: at }]
        return { type: "subscription.delete", user: name, removed }
      }
      case "subscription.gone": {
        const id = idAt(user, this.#which[which]!)
        const died = { broadcast: which + 1, status: 410, cause: "gone" as const, at }
        return { type: "subscription.gone", id, generation: which, ...died }
      }
      case "registration.put":
        return { type: "registration.put", user: name, at, registrationsMax: 200 }
      case "registration.delete":
        return { type: "registration.delete", user: name, at }
    }
  }

  /** The messages of a subject, in order. */
  *on(subject: string): Generator<number> {
    const place = parseRegistration(subject)
    const subscriber = parseSubscription(subject)
    if (subscriber === undefined && place?.channel !== news) {
      yield* this.#bySubject.get(subject) ?? []
      return
    }
    const chain = 2 * userIn(subscriber ?? place!.user) + Number(subscriber === undefined)
    for (let seq = this.#first[chain]!; seq > 0; seq = this.#next[seq]!) yield seq
  }
}
