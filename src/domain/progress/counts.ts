// Counts by a word, such as a reason, and by a duration. Pure.
import * as Schema from "effect/Schema"

/** Times that each word was counted. A word stays once it was counted, even with 0. */
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
 * Times that each duration was counted: a place, then the counts of it and of the places behind
 * it. Place k is about 1.17^k ms. Neighbours differ by 17 %, so that no duration is
 * further than 10 % from its place. A minute is at place 70.
 */
export const Durations = Schema.Array(Schema.Int)
export type Durations = typeof Durations.Type

const step = Math.log(1.17)
const millisAt = (place: number): number => Math.round(Math.exp(step * place))

/** Counts a duration from 1 ms on. */
export const addMillis = (durations: Array<number>, millis: number): void => {
  const place = Math.round(Math.log(millis) / step)
  if (durations.length === 0) durations.push(place)
  while (place < durations[0]!) durations.splice(0, 1, durations[0]! - 1, 0)
  const i = place - durations[0]! + 1
  while (durations.length <= i) durations.push(0)
  durations[i]! += 1
}

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
