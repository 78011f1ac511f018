// The outcomes of the pushes of a broadcast, by reason and push service, and how long push services
// took to answer. Pure.
import * as Schema from "effect/Schema"
import type { PushResult } from "../outcome.ts"
import { pushServiceOf } from "../subscription/endpoint.ts"
import { add, addMillis, boundedWord, CountsBy, Durations, type MutableCountsBy } from "./counts.ts"

/** More than any broadcast has: a third of all reasons. */
const reasonsMax = 32
const servicesMax = 8

const ServiceDetails = Schema.Struct({
  /** Pushes by outcome. */
  fates: CountsBy,
  /** Answers by the time that they took. */
  durations: Durations
})

export const Details = Schema.Struct({
  /** Pushes by the reason of their outcome. */
  reasons: CountsBy,
  services: Schema.Record(Schema.String, ServiceDetails),
  /** When a push service accepted the first push, and the last one. */
  firstDeliveredAt: Schema.optionalKey(Schema.Int),
  lastDeliveredAt: Schema.optionalKey(Schema.Int)
})
export type Details = typeof Details.Type

export const noDetails: Details = { reasons: {}, services: {} }

interface ServiceDraft {
  readonly fates: MutableCountsBy
  readonly durations: Array<number>
}

/** Details that are counted on: what changes is a copy. */
interface Draft {
  readonly reasons: MutableCountsBy
  readonly services: Record<string, typeof ServiceDetails.Type>
  readonly copies: Map<string, ServiceDraft>
  first: number
  last: number
}

const serviceIn = ({ copies, services }: Draft, name: string): ServiceDraft => {
  const word = boundedWord(services, name, servicesMax)
  const known = copies.get(word)
  if (known !== undefined) return known
  const { durations = [], fates } = services[word] ?? {}
  const copy = { fates: { ...fates }, durations: [...durations] }
  services[word] = copy
  copies.set(word, copy)
  return copy
}

const count = (draft: Draft, result: PushResult, isRetry: boolean): void => {
  const { at, fate, former, millis, reason, status } = result
  const { reasons } = draft
  const of = serviceIn(draft, pushServiceOf(result))
  if (isRetry) {
    add(of.fates, "retrying", -1)
    if (former !== undefined) add(reasons, boundedWord(reasons, former.reason, reasonsMax), -1)
  }
  add(of.fates, fate, 1)
  add(reasons, boundedWord(reasons, reason, reasonsMax), 1)
  if (status !== undefined && millis > 0) addMillis(of.durations, millis)
  if (fate !== "delivered") return
  draft.first = Math.min(draft.first, at)
  draft.last = Math.max(draft.last, at)
}

/** Counts results. `isRetry`: of pushes that were retrying. */
export const evolveDetails = (
  { firstDeliveredAt, lastDeliveredAt, reasons, services }: Details,
  results: ReadonlyArray<PushResult>,
  isRetry: boolean
): Details => {
  const draft: Draft = {
    reasons: { ...reasons },
    services: { ...services },
    copies: new Map(),
    first: firstDeliveredAt ?? Number.POSITIVE_INFINITY,
    last: lastDeliveredAt ?? 0
  }
  for (const result of results) count(draft, result, isRetry)
  const times = { firstDeliveredAt: draft.first, lastDeliveredAt: draft.last }
  return {
    reasons: draft.reasons,
    services: draft.services,
    ...(draft.last === 0 ? {} : times)
  }
}
