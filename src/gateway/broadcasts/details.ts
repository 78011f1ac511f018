// The outcomes of the pushes of a broadcast, by reason and push service, as responses show them.
import * as Schema from "effect/Schema"
import { CountsBy, type Durations, quantile } from "#domain/progress/counts.ts"
import { type Details, noDetails } from "#domain/progress/details.ts"

const Answers = Schema.Struct({
  /** Milliseconds that half of the answers took at most, and 99 % of them; within 10 %. */
  p50_millis: Schema.optionalKey(Schema.Int),
  p99_millis: Schema.optionalKey(Schema.Int)
})

export const BroadcastDetails = Schema.Struct({
  reasons: CountsBy,
  push_services: Schema.Record(
    Schema.String,
    Schema.Struct({
      delivered: Schema.Int,
      retrying: Schema.Int,
      expired: Schema.Int,
      dead: Schema.Int,
      gone: Schema.Int,
      cancelled: Schema.Int,
      ...Answers.fields
    })
  ),
  /** When a push service took the first push, and the last one. */
  first_delivered_at: Schema.optionalKey(Schema.Int),
  last_delivered_at: Schema.optionalKey(Schema.Int),
  ...Answers.fields
})

const answersOf = (durations: ReadonlyArray<Durations>): typeof Answers.Type => {
  const [p50, p99] = [quantile(durations, 0.5), quantile(durations, 0.99)]
  return p50 === undefined || p99 === undefined ? {} : { p50_millis: p50, p99_millis: p99 }
}

const serviceOf = ({ durations, fates }: Details["services"][string]) => {
  const { cancelled = 0, dead = 0, delivered = 0, expired = 0, gone = 0, retrying = 0 } = fates
  return { delivered, retrying, expired, dead, gone, cancelled, ...answersOf([durations]) }
}

export const detailsOf = (details: Details = noDetails): typeof BroadcastDetails.Type => {
  const { firstDeliveredAt, lastDeliveredAt, reasons, services } = details
  return {
    reasons: Object.fromEntries(Object.entries(reasons).filter(([, count]) => count > 0)),
    push_services: Object.fromEntries(
      Object.entries(services).map(([name, service]) => [name, serviceOf(service)])
    ),
    ...(firstDeliveredAt !== undefined && { first_delivered_at: firstDeliveredAt }),
    ...(lastDeliveredAt !== undefined && { last_delivered_at: lastDeliveredAt }),
    ...answersOf(Object.values(services).map(({ durations }) => durations))
  }
}
