// What workers tell each other about push services, on core NATS: nothing that could not be learned again, so a lost message costs nothing
// but time. It names a push service and a VAPID key, never an endpoint. Durations, not times: clocks differ.
import { Schema } from "effect"

const Count = Schema.Int.pipe(Schema.check(Schema.isGreaterThanOrEqualTo(0)))

export const LaneNews = Schema.Struct({
  /** Who says so: everybody hears himself too. */
  worker: Schema.String,
  /** Scheme, host and port of the push service. */
  origin: Schema.String,
  /** Of the VAPID key: the first digits of its hash. */
  key: Schema.String,
  /** Answers since the last news, and how many of them said "gone". */
  answers: Count,
  gone: Count,
  /** "Gone" is not believed. */
  holds: Schema.Boolean,
  /** Sequence in LOG of the newest broadcast of which a push was accepted. */
  reached: Schema.optionalKey(Count),
  /** Our credentials were refused: leave it alone for so long. 0: they are taken again. */
  openMillis: Schema.optionalKey(Count),
  /** We were throttled: send at most so many pushes at a time. */
  window: Schema.optionalKey(Count),
  /** We were asked to send nothing for so long. */
  closedMillis: Schema.optionalKey(Count)
})
export type LaneNews = typeof LaneNews.Type

export const decodeNews = Schema.decodeUnknownExit(LaneNews)
