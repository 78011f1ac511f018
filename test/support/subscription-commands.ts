// Commands about subscriptions, for tests of a user's list.

import type { SubscriptionCommand, SubscriptionPut } from "#domain/subscription/command.ts"
import { emptyList, evolveList } from "#domain/subscription/subscription.ts"
import { givens } from "./given.ts"

export const given = givens(evolveList, emptyList)

export const data = (name: string) => ({
  endpoint: `https://push.example.com/${name}`,
  keys: { auth: "a", p256dh: "p" }
})
export const put = (
  id: string,
  lastModified: number,
  more: Partial<Omit<SubscriptionPut, "id">> & { readonly name?: string } = {}
): SubscriptionCommand => {
  const { name = id, ...rest } = more
  return { type: "subscription.put", user: "u", id, data: data(name), lastModified, ...rest }
}
export const del = (
  ...removed: ReadonlyArray<readonly [id: string, lastModified: number]>
): SubscriptionCommand => ({
  type: "subscription.delete",
  user: "u",
  removed: removed.map(([id, lastModified]) => ({ id, lastModified }))
})
export const gone = (id: string, generation: number, at: number): SubscriptionCommand => ({
  type: "subscription.gone",
  id,
  generation,
  broadcast: 1,
  status: 410,
  cause: "gone",
  at
})

export const matched = (id: string, generation: number, vapidKey: string): SubscriptionCommand => ({
  type: "subscription.matched",
  id,
  generation,
  vapidKey,
  at: 1
})

export const of = (id: string, generation: number) => ({
  id,
  generation,
  broadcast: 1,
  cause: "unknown-host" as const,
  worker: "w"
})
export const struck = (
  id: string,
  generation: number,
  strike: number,
  at: number
): SubscriptionCommand => ({
  type: "subscription.struck",
  ...of(id, generation),
  strike,
  at
})
export const suspended = (id: string, generation: number, at: number): SubscriptionCommand => ({
  type: "subscription.suspended",
  ...of(id, generation),
  at
})
export const cleared = (id: string, generation: number, at = 500): SubscriptionCommand => ({
  type: "subscription.cleared",
  id,
  generation,
  by: "push",
  at
})
