// Messages of WORK about one broadcast, for tests of its counts.
import type { Fate, Outcome, Plan, PushResult } from "#domain/outcome.ts"
import type { UnknownReason } from "#domain/reason.ts"

export const plan = (shards: number): Plan => ({
  broadcast: 9,
  depth: shards > 1 ? 1 : 0,
  shards,
  floor: { subscriptions: 1, registrations: 1 },
  acceptedAt: 1_000,
  expiresAt: 61_000,
  at: 1_005
})

export const result = (subscription: string, fate: Fate): PushResult => ({
  user: "u",
  subscription,
  fate,
  reason: "because" as UnknownReason,
  attempt: 1,
  millis: 5,
  at: 1_010
})

export const outcome = (
  pushes: number,
  fates: ReadonlyArray<Fate>,
  final: boolean,
  at = 1_010
): Outcome => ({
  broadcast: 9,
  pushes,
  results: fates.map((fate, i) => result(`s${i}`, fate)),
  final,
  at
})
