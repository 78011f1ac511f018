// The part of a process that a shard of a broadcast with a rate may take.

/** A shard is left after this time, so that those of other broadcasts have theirs. */
const millisMax = 30_000
/** The fewest pushes that wait for their turns at once. */
const pushesMin = 8

/**
 * Returns after how many milliseconds a shard is left, and how many of its pushes are under way or
 * wait for their turns at once: those of a second.
 */
export const shareOf = (rate: number | undefined, concurrency: number) =>
  rate === undefined
    ? { millis: Number.POSITIVE_INFINITY, concurrency }
    : { millis: millisMax, concurrency: Math.min(concurrency, Math.max(pushesMin, rate)) }
