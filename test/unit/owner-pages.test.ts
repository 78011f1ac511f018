// The page of an endpoint's owner after a crash: what a later run makes of it is what a run without
// a crash had made.
import { assert, it } from "vitest"
import { endpointHash } from "#domain/subscription/owners.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { fold } from "#projection/fold.ts"
import type { Sets } from "#projection/sets.ts"
import { stepOf } from "#projection/step.ts"
import { keys } from "#streams/buckets.ts"
import { tokenOf } from "../support/users.ts"

const user = tokenOf("anna")
const endpoint = "https://push.example.com/1"
const id = endpointHash(endpoint)
const list = keys.subscriptions(user)
const page = keys.endpointOwners(id)

/** Maps for the caches that a fold of subscriptions reads and sets: nothing is written. */
const setsOf = (lists: object, owners: object) => {
  const cacheOf = (stored: object) => {
    const values = new Map(Object.entries(stored))
    return {
      get: (key: string) => values.get(key),
      set: (key: string, value: unknown) => void values.set(key, value),
      unstoredSince: () => Number.POSITIVE_INFINITY
    }
  }
  const sets = { lists: cacheOf(lists), owners: cacheOf(owners), moves: new Set() }
  return { ...sets, refused: new Set(), marks: new Map(), isLive: true } as unknown as Sets
}

const storedOf = (seq: number, message: object) =>
  ({
    seq,
    subject: `bellcast.cmd.subscription.${user}`,
    at: seq * 1_000,
    header: () => undefined,
    message
  }) as unknown as Stored

const put = (seq: number) => {
  const data = { endpoint, keys: { auth: "a", p256dh: "p" } }
  return storedOf(seq, {
    type: "subscription.put",
    user: "anna",
    id,
    data,
    lastModified: seq
  })
}
const gone = (seq: number, generation: number) =>
  storedOf(seq, {
    type: "subscription.gone",
    ...{ id, generation, broadcast: 1, status: 410, cause: "gone", at: seq }
  })

it("is the same where only the list was stored before a crash", () => {
  const log = [put(10), gone(22, 10), put(35)]
  const whole = setsOf({}, {})
  fold(whole, stepOf(log[0]!)!)
  const before = whole.owners.get(page)
  for (const stored of log.slice(1)) fold(whole, stepOf(stored)!)
  const after = setsOf({ [list]: whole.lists.get(list)! }, { [page]: before! })
  for (const stored of log.slice(1)) fold(after, stepOf(stored)!)
  assert.deepEqual(after.owners.get(page), whole.owners.get(page))
  assert.equal(whole.owners.get(page)?.seq, 35)
})
