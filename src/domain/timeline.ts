// When the pushes of a broadcast had their last outcomes: counts by minute, in at most 300 points.
// A broadcast that lasts longer has wider points. The same outcomes make the same points in
// whatever order they are counted. Pure.
import * as Schema from "effect/Schema"
import type { Plan, PushResult } from "./outcome.ts"

/**
 * Counts by place: the first place, then the counts of it and of the places behind it. The first
 * and the last of the counts are never 0.
 */
export const Places = Schema.Array(Schema.Int)
export type Places = typeof Places.Type

/** The fates that are final, in the order in which responses show them. */
export const finalFates = ["delivered", "expired", "dead", "gone", "cancelled"] as const

export const Timeline = Schema.Struct({
  /** The width of a point. A point has its place from the epoch on, in this width. */
  minutes: Schema.Int,
  /** By fate, the pushes by point. */
  fates: Schema.Record(Schema.String, Places)
})
export type Timeline = typeof Timeline.Type
export const noTimeline: Timeline = { minutes: 1, fates: {} }

/** The life of a broadcast: from its start until its pushes expire. */
export type Life = Pick<Plan, "acceptedAt" | "expiresAt">

/** A stored timeline has 11 KB at most, with 100 million pushes of each fate. */
export const pointsMax = 300
/** Minutes of a point. Each divides the next, so that merged points have no rest. */
const widths = [1, 5, 15, 60, 180] as const

const minuteMillis = 60_000
const dayMillis = 24 * 60 * minuteMillis
/** 280 of the widest points: more than the longest life, 28 days, and a day. */
const lifeMillisMax = 35 * dayMillis

/** Counts the results that are final. */
export const evolveTimeline = (
  before: Timeline,
  results: ReadonlyArray<PushResult>,
  life: Life
): Timeline => {
  const ended = results.flatMap(({ at, fate }) =>
    fate === "retrying" ? [] : [{ fate, minute: minuteOf(at, life) }]
  )
  if (ended.length === 0) return before
  const minutes = widthOf(before, ended)
  const fates = inWidth(before, minutes)
  // A push that was retrying comes alone, and copies the places of its own fate only.
  const copies: Record<string, Array<number>> = {}
  for (const { fate, minute } of ended) {
    copies[fate] ??= [...(fates[fate] ?? [])]
    addAt(copies[fate], Math.floor(minute / minutes), 1)
  }
  return { minutes, fates: { ...fates, ...copies } }
}

/**
 * The minute of an outcome. The clock of a worker may be wrong by years, which would make all
 * points too wide. So an outcome counts at the start at the earliest, and a day after the end at
 * the latest: a worker that was away records late that pushes expired.
 */
const minuteOf = (at: number, { acceptedAt, expiresAt }: Life): number => {
  const latest = Math.min(expiresAt + dayMillis, acceptedAt + lifeMillisMax)
  return Math.floor(Math.max(acceptedAt, Math.min(at, latest)) / minuteMillis)
}

/** The least width, not below the present one, in which the points are few enough. */
const widthOf = (
  before: Timeline,
  added: ReadonlyArray<{ readonly minute: number }>
): (typeof widths)[number] => {
  const [first, last] = endsOf(before)
  const minutes = added.map(({ minute }) => minute)
  const from = Math.min(first * before.minutes, ...minutes)
  const to = Math.max(last * before.minutes, ...minutes)
  const isEnough = (width: number) =>
    width >= before.minutes && Math.floor(to / width) - Math.floor(from / width) < pointsMax
  return widths.find(isEnough) ?? 180
}

/** The first and the last place. */
const endsOf = ({ fates }: Timeline): readonly [first: number, last: number] => {
  const all = Object.values(fates)
  return [
    Math.min(...all.map((places) => places[0]!)),
    Math.max(...all.map((places) => places[0]! + places.length - 2))
  ]
}

/** The fates in points of this width. */
const inWidth = (timeline: Timeline, minutes: number): Timeline["fates"] => {
  const times = minutes / timeline.minutes
  if (times === 1) return timeline.fates
  return Object.fromEntries(
    Object.entries(timeline.fates).map(([fate, places]) => [fate, merged(places, times)])
  )
}

/** Places that are so many times as wide. */
const merged = ([first, ...counts]: Places, times: number): Places => {
  const wider: Array<number> = []
  for (const [i, count] of counts.entries())
    if (count > 0) addAt(wider, Math.floor((first! + i) / times), count)
  return wider
}

/** Counts at a place. */
export const addAt = (places: Array<number>, place: number, count: number): void => {
  if (places.length === 0) places.push(place)
  while (place < places[0]!) places.splice(0, 1, places[0]! - 1, 0)
  const i = place - places[0]! + 1
  while (places.length <= i) places.push(0)
  places[i]! += count
}

/** The points from the first to the last, those without an outcome included. */
export const pointsOf = (timeline: Timeline) => {
  const { fates, minutes } = timeline
  const [first, last] = endsOf(timeline)
  const countOf = (fate: string, place: number): number => {
    const [begin = 0, ...counts] = fates[fate] ?? []
    return counts[place - begin] ?? 0
  }
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => ({
    at: (first + i) * minutes * minuteMillis,
    delivered: countOf("delivered", first + i),
    expired: countOf("expired", first + i),
    dead: countOf("dead", first + i),
    gone: countOf("gone", first + i),
    cancelled: countOf("cancelled", first + i)
  }))
}
