// Counts by a word, such as a reason, and by a duration. Pure.
import * as Schema from "effect/Schema"

/** How often each word was counted. A word stays once it was counted, even with 0. */
export const CountsBy = Schema.Record(Schema.String, Schema.Int)
export type CountsBy = typeof CountsBy.Type
export type MutableCountsBy = Record<string, number>

const otherWord = "other"

/**
 * The word that a word is counted as: itself, or `other` if it is new and there are `max` already.
 * Messages choose the words, and what is stored of them is bounded.
 */
export const boundedWord = (known: object, word: string, max: number): string =>
  Object.hasOwn(known, word) || Object.keys(known).length < max ? word : otherWord

export const add = (counts: MutableCountsBy, word: string, by: number): void => {
  counts[word] = (counts[word] ?? 0) + by
}

/**
 * How often each duration was counted: at place k one of about 1.17^k ms. Neighbours differ by
 * 17 %, so that no duration is further than 10 % from its place. A minute is at place 70.
 */
export const Durations = Schema.Array(Schema.Int)
export type Durations = typeof Durations.Type

const step = Math.log(1.17)
const millisAt = (place: number): number => Math.round(Math.exp(step * place))

/** Counts a duration from 1 ms on. */
export const addMillis = (durations: Array<number>, millis: number): void => {
  const place = Math.round(Math.log(millis) / step)
  while (durations.length <= place) durations.push(0)
  durations[place]! += 1
}

export const sumOf = (all: ReadonlyArray<Durations>): Durations =>
  Array.from({ length: Math.max(0, ...all.map(({ length }) => length)) }, (_, place) =>
    all.reduce((sum, durations) => sum + (durations[place] ?? 0), 0)
  )

/**
 * The duration that a share of the counted ones does not exceed, within 10 %. Undefined: none is
 * counted.
 */
export const quantile = (durations: Durations, share: number): number | undefined => {
  let left = share * durations.reduce((sum, count) => sum + count, 0)
  const place = durations.findIndex((count) => {
    left -= count
    return left <= 0
  })
  return place < 0 ? undefined : millisAt(place)
}
