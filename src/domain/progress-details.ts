// The details of a broadcast's progress: its pushes by reason, push service and language, those
// that are tried again and until when, how long answers took, and when outcomes came. Each adds up
// to the counts of the progress. Pure.
import * as Schema from "effect/Schema"
import type { PushResult } from "./outcome.ts"
import { pushServiceOf } from "./subscription/endpoint.ts"
import { addAt, evolveTimeline, type Life, noTimeline, Places, Timeline } from "./timeline.ts"

/** Times that each word was counted. A word stays once it was counted, even with 0. */
export const CountsBy = Schema.Record(Schema.String, Schema.Int)
export type CountsBy = typeof CountsBy.Type

/**
 * Times that each duration was counted, by place. Place k is about 1.17^k ms. Neighbours differ
 * by 17 %, so that no duration is further than 10 % from its place. A minute is at place 70.
 */
export const Durations = Places
export type Durations = Places

/** More than any broadcast has: a third of all reasons. */
const reasonsMax = 32
const servicesMax = 8
/** Most variants of a broadcast. */
const localesMax = 20

const ServiceDetails = Schema.Struct({
  /** Pushes by outcome. */
  fates: CountsBy,
  /** Answers by the time that they took. */
  durations: Durations
})

const Retries = Schema.Struct({
  pushes: Schema.Int,
  /** When the last of all that waited for this reason ends, as its outcome said. */
  until: Schema.Int
})

export const Details = Schema.Struct({
  /** Pushes by the reason of their outcome. */
  reasons: CountsBy,
  services: Schema.Record(Schema.String, ServiceDetails),
  /** Pushes that are tried again, by the reason. Absent: none ever was. */
  retries: Schema.optionalKey(Schema.Record(Schema.String, Retries)),
  /** Pushes by the language of their variant, and by outcome. The others are of `data`. */
  locales: Schema.optionalKey(Schema.Record(Schema.String, CountsBy)),
  timeline: Schema.optionalKey(Timeline),
  /** When a push service accepted the first push, and the last one. */
  firstDeliveredAt: Schema.optionalKey(Schema.Int),
  lastDeliveredAt: Schema.optionalKey(Schema.Int)
})
export type Details = typeof Details.Type
export const noDetails: Details = { reasons: {}, services: {} }

/** Of `data`, the payload for all who read no language of a variant. No tag is this word. */
export const noLocale = "data"

type MutableCountsBy = Record<string, number>

interface ServiceDraft {
  readonly fates: MutableCountsBy
  readonly durations: Array<number>
}

/** Details that are counted on: what changes is a copy. */
interface Draft {
  readonly reasons: MutableCountsBy
  readonly services: Record<string, typeof ServiceDetails.Type>
  readonly copies: Map<string, ServiceDraft>
  readonly retries: Record<string, typeof Retries.Type>
  readonly locales: Record<string, CountsBy>
  readonly localeCopies: Map<string, MutableCountsBy>
  first: number
  last: number
}

/**
 * Counts results: of first attempts in a shard, or of a push that was retrying, whose former
 * outcome counts no more.
 */
export const evolveDetails = (
  { firstDeliveredAt, lastDeliveredAt, locales, reasons, retries, services, timeline }: Details,
  results: ReadonlyArray<PushResult>,
  of: "shard" | "push",
  life: Life
): Details => {
  const draft: Draft = {
    reasons: { ...reasons },
    services: { ...services },
    copies: new Map(),
    retries: { ...retries },
    locales: { ...locales },
    localeCopies: new Map(),
    first: firstDeliveredAt ?? Number.POSITIVE_INFINITY,
    last: lastDeliveredAt ?? 0
  }
  for (const result of results) count(draft, result, of === "push", life)
  const times = { firstDeliveredAt: draft.first, lastDeliveredAt: draft.last }
  const next = evolveTimeline(timeline ?? noTimeline, results, life)
  return {
    reasons: draft.reasons,
    services: draft.services,
    ...(isEmpty(draft.retries) ? {} : { retries: draft.retries }),
    ...(isEmpty(draft.locales) ? {} : { locales: draft.locales }),
    ...(next === noTimeline ? {} : { timeline: next }),
    ...(draft.last === 0 ? {} : times)
  }
}

const isEmpty = (record: object): boolean => Object.keys(record).length === 0

const count = (draft: Draft, result: PushResult, isRetry: boolean, life: Life): void => {
  const { at, fate, former, locale, millis, reason, status } = result
  const { reasons, retries } = draft
  const of = serviceIn(draft, pushServiceOf(result))
  if (isRetry) {
    add(of.fates, "retrying", -1)
    if (former !== undefined) {
      add(reasons, boundedWord(reasons, former.reason, reasonsMax), -1)
      addRetry(retries, former.reason, -1, 0)
      if (former.locale !== undefined) add(localeIn(draft, former.locale), "retrying", -1)
    }
  }
  add(of.fates, fate, 1)
  add(reasons, boundedWord(reasons, reason, reasonsMax), 1)
  if (fate === "retrying") addRetry(retries, reason, 1, result.until ?? life.expiresAt)
  if (locale !== undefined) add(localeIn(draft, locale), fate, 1)
  if (status !== undefined && millis > 0) addMillis(of.durations, millis)
  if (fate !== "delivered") return
  draft.first = Math.min(draft.first, at)
  draft.last = Math.max(draft.last, at)
}

const serviceIn = ({ copies, services }: Draft, name: string): ServiceDraft => {
  const word = boundedWord(services, name, servicesMax)
  const known = copies.get(word)
  if (known !== undefined) return known
  const { durations = [], fates } = own(services, word) ?? {}
  const copy = { fates: { ...fates }, durations: [...durations] }
  services[word] = copy
  copies.set(word, copy)
  return copy
}

/**
 * The end of the last stays the latest that was known. It is an estimate at most, and in another
 * order of outcomes the result would be another one.
 */
const addRetry = (retries: Draft["retries"], reason: string, by: number, end: number): void => {
  const word = boundedWord(retries, reason, reasonsMax)
  const { pushes = 0, until = 0 } = own(retries, word) ?? {}
  retries[word] = { pushes: pushes + by, until: Math.max(until, end) }
}

const localeIn = ({ localeCopies, locales }: Draft, locale: string): MutableCountsBy => {
  const word = boundedWord(locales, locale, localesMax)
  const copy = localeCopies.get(word) ?? { ...own(locales, word) }
  locales[word] = copy
  localeCopies.set(word, copy)
  return copy
}

const otherWord = "other"

/**
 * The word that a word is counted as: itself, or `other` if it is new and there are `max` already.
 * Messages choose the words, and what is stored of them is bounded.
 */
const boundedWord = (known: object, word: string, max: number): string =>
  Object.hasOwn(known, word) || Object.keys(known).length < max ? word : otherWord

/** `toString` is a valid language tag, and a member of each object. */
const own = <A>(record: Readonly<Record<string, A>>, word: string): A | undefined =>
  Object.hasOwn(record, word) ? record[word] : undefined

const add = (counts: MutableCountsBy, word: string, by: number): void => {
  counts[word] = (own(counts, word) ?? 0) + by
}

/** Pushes by outcome, all of a broadcast together. */
const fatesIn = ({ services }: Details): CountsBy => {
  const all: MutableCountsBy = {}
  for (const { fates } of Object.values(services))
    for (const [fate, pushes] of Object.entries(fates)) add(all, fate, pushes)
  return all
}

/**
 * Pushes by language and outcome, those of `data` included: they add up to all pushes with an
 * outcome. Undefined: no variant was sent.
 */
export const localesIn = (details: Details): Readonly<Record<string, CountsBy>> | undefined => {
  const { locales } = details
  if (locales === undefined) return undefined
  const rest: MutableCountsBy = { ...fatesIn(details) }
  for (const counts of Object.values(locales))
    for (const [fate, pushes] of Object.entries(counts)) add(rest, fate, -pushes)
  return { ...locales, [noLocale]: rest }
}

const step = Math.log(1.17)
const millisAt = (place: number): number => Math.round(Math.exp(step * place))

/** Counts a duration from 1 ms on. */
export const addMillis = (durations: Array<number>, millis: number): void =>
  addAt(durations, Math.round(Math.log(millis) / step), 1)

/**
 * The duration that a share of all counted ones does not exceed, within 10 %. Undefined: none is
 * counted.
 */
export const quantile = (all: ReadonlyArray<Durations>, share: number): number | undefined => {
  const places = all
    .flatMap(([first = 0, ...counts]) => counts.map((count, i) => [first + i, count] as const))
    .sort(([a], [b]) => a - b)
  let left = share * places.reduce((sum, [, count]) => sum + count, 0)
  const found = places.find(([, count]) => {
    left -= count
    return left <= 0
  })
  return found && millisAt(found[0])
}
