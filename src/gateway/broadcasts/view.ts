// A broadcast as responses show it: its state and its counts. Always:
// accepted = delivered + waiting + retrying + expired + dead + gone + cancelled.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { isFinal, type Origin, type Standing } from "#broadcasts/state.ts"
import { isTest, readRecipients } from "#broadcasts/whole-broadcast.ts"
import {
  PauseWhen,
  pauseWhenHeader,
  pauseWhenOf,
  publisherOf,
  Rate,
  readHeaders,
  redrivesHeader,
  ttlSecondsDefault,
  Urgency
} from "#domain/broadcast.ts"
import { Because, BroadcastState, type Schedule } from "#domain/broadcast-state.ts"
import { doneShare, type Progress, startProgress, waiting } from "#domain/progress.ts"
import {
  CountsBy,
  type Details,
  type Durations,
  localesIn,
  noDetails,
  quantile
} from "#domain/progress-details.ts"
import type { Recipients } from "#domain/recipients.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { decodeTokens } from "#streams/tokens.ts"

const Answers = Schema.Struct({
  /** Milliseconds that half of the answers took at most, and 99 % of them; within 10 %. */
  p50_millis: Schema.optionalKey(Schema.Int),
  p99_millis: Schema.optionalKey(Schema.Int)
})

/** Pushes by outcome. */
const Outcomes = Schema.Struct({
  delivered: Schema.Int,
  retrying: Schema.Int,
  expired: Schema.Int,
  dead: Schema.Int,
  gone: Schema.Int,
  cancelled: Schema.Int
})

const BroadcastDetails = Schema.Struct({
  reasons: CountsBy,
  /** Why pushes are tried again, and when the last of each ends at the latest, most first. */
  retries: Schema.Array(
    Schema.Struct({ reason: Schema.String, pushes: Schema.Int, until: Schema.Int })
  ),
  push_services: Schema.Record(
    Schema.String,
    Schema.Struct({ ...Outcomes.fields, ...Answers.fields })
  ),
  /** By language, and `data` for the others; absent: no variant was sent. */
  locales: Schema.optionalKey(Schema.Record(Schema.String, Outcomes)),
  /** When a push service took the first push, and the last one. */
  first_delivered_at: Schema.optionalKey(Schema.Int),
  last_delivered_at: Schema.optionalKey(Schema.Int),
  ...Answers.fields
})

const Data = Schema.Record(Schema.String, Schema.Unknown)

/** A broadcast in a response. */
export const BroadcastObject = Schema.Struct({
  id: Schema.String,
  state: BroadcastState,
  /** The id of a user or of a token, or `nats:<source>`; `operator`: by the command `redrive`. */
  publisher: Schema.String,
  /** For those who send it: it is in no push. */
  name: Schema.optionalKey(Schema.String),
  /** The topic of its pushes: a word of those who send it, shown where `name` is. */
  topic: Schema.optionalKey(Schema.String),
  /** A test: only lists for operators have it, unless `test` is asked for. Absent: it is none. */
  test: Schema.optionalKey(Schema.Literal(true)),
  /** The texts that browsers show, of the first variant where there is no other data. */
  title: Schema.optionalKey(Schema.String),
  body: Schema.optionalKey(Schema.String),
  image: Schema.optionalKey(Schema.String),
  /** The id of the broadcast that it sends again. */
  redrives: Schema.optionalKey(Schema.String),
  /** The channels, and the numbers of named users; none where the message is not valid. */
  to: Schema.Struct({
    channels: Schema.Array(Schema.String),
    users: Schema.Int,
    except_users: Schema.Int
  }),
  /** Registrations and named users that it was planned for; absent: it is not planned yet. */
  people: Schema.optionalKey(Schema.Int),
  accepted: Schema.Int,
  delivered: Schema.Int,
  waiting: Schema.Int,
  retrying: Schema.Int,
  expired: Schema.Int,
  dead: Schema.Int,
  gone: Schema.Int,
  cancelled: Schema.Int,
  /** The share of pushes with a last outcome; absent: it is not planned yet. */
  done_share: Schema.optionalKey(Schema.Finite),
  shards: Schema.Int,
  shards_done: Schema.Int,
  finished: Schema.Boolean,
  last_modified: Schema.Int,
  accepted_at: Schema.Int,
  expires_at: Schema.Int,
  /** When it starts, as the publisher wrote it; absent: when it was accepted. */
  at: Schema.optionalKey(Schema.String),
  /** When it started; absent: not later than it was accepted, or not yet. */
  started_at: Schema.optionalKey(Schema.Int),
  /** Named users without a subscription; absent where none are named. */
  without_subscription: Schema.optionalKey(Schema.Int),
  /** Pushes a second at most; absent: as many as can be sent. */
  rate: Schema.optionalKey(Rate),
  /** Seconds. Absent: 86,400. */
  ttl: Schema.optionalKey(Schema.Int),
  /** Absent: normal. */
  urgency: Schema.optionalKey(Urgency),
  pause_when: Schema.optionalKey(PauseWhen),
  /** The id of the last who paused, resumed or cancelled the broadcast; absent: nobody did. */
  changed_by: Schema.optionalKey(Schema.String),
  /** The counts by which `pause_when` made the last change; absent: somebody else made it. */
  because: Schema.optionalKey(Because),
  /** The reason why nothing is sent. */
  rejected: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "Broadcast" })

type View = typeof BroadcastObject.Type

type Counts = Omit<View, "publisher" | "redrives" | "to" | "finished">

/** The body of a response that shows one broadcast: with details, which lists leave out. */
export const Shown = Schema.Struct({
  data: Schema.Struct({
    ...BroadcastObject.fields,
    ...BroadcastDetails.fields,
    /** As it was published, or changed before the start. */
    data: Schema.optionalKey(Data),
    data_by_locale: Schema.optionalKey(Schema.Record(Schema.String, Data)),
    /** For the publisher: whom it names. A broadcast or a draft may name them so, too. */
    users: Schema.optionalKey(Schema.Array(Schema.String)),
    except_users: Schema.optionalKey(Schema.Array(Schema.String))
  }).annotate({ identifier: "BroadcastWithDetails" })
})

export const detailedViewOf = (
  origin: Origin,
  standing: Standing,
  recipients: ReturnType<typeof recipientsOf> = recipientsOf(origin)
) =>
  Effect.map(viewOf(origin, standing, recipients), (view) => ({
    ...view,
    ...detailsOf(standing)
  }))

/** A broadcast as it stands, without what it says. `recipients`: `recipientsOf` the broadcast. */
export const viewOf = Effect.fnUntraced(function* (
  origin: Origin,
  standing: Standing,
  recipients: ReturnType<typeof recipientsOf> = recipientsOf(origin)
) {
  const { change, expiresAt, progress, rejected, schedule, state } = standing
  const { source, stored } = origin
  const { headers } = readHeaders(stored.header)
  const { ttlSeconds, urgency } = headers
  const rate = schedule?.rate ?? headers.rate
  const pauseWhen = pauseWhenOf(stored.header(pauseWhenHeader) ?? "")
  const redrives = source === "redrive" ? stored.header(redrivesHeader) : undefined
  const counts = countsOf(progress ?? unplanned(origin, expiresAt), state)
  const view: View = {
    ...counts,
    ...(progress === undefined ? {} : { done_share: doneShare(progress) }),
    finished: isFinal(standing),
    publisher: publisherOf(source, stored.header) ?? "",
    ...(isTest(stored) ? { test: true } : {}),
    ...(redrives === undefined ? {} : { redrives }),
    to: yield* recipients,
    last_modified: lastModifiedOf(origin, standing),
    ...timesOf(schedule),
    ...(rate === undefined || rejected !== undefined ? {} : { rate }),
    ...(ttlSeconds === ttlSecondsDefault || rejected !== undefined ? {} : { ttl: ttlSeconds }),
    ...(urgency === "normal" ? {} : { urgency }),
    ...(pauseWhen === undefined ? {} : { pause_when: pauseWhen }),
    ...changedBy(change),
    ...(rejected === undefined ? {} : { rejected })
  }
  return view
})

/** Milliseconds since the epoch. Moves with each change of the state, schedule and counts. */
export const lastModifiedOf = ({ stored }: Origin, { change, progress }: Standing): number =>
  Math.max(progress?.lastModified ?? stored.at, change?.at ?? 0)

/** The member `to` of a view. It never changes, and may take several requests. */
export const recipientsOf = Effect.fnUntraced(function* ({ stored }: Origin) {
  return recipientsIn(yield* readRecipients(yield* EventLog, stored))
})

/** Undefined: the message is not valid. */
export const recipientsIn = (to: Recipients | undefined) => ({
  channels: decodeTokens(to?.channels ?? []),
  users: to?.users.length ?? 0,
  except_users: to?.except.length ?? 0
})

const countsOf = (progress: Progress, state: BroadcastState): Counts => ({
  id: String(progress.broadcast),
  state,
  ...(progress.people === undefined ? {} : { people: progress.people }),
  accepted: progress.accepted,
  delivered: progress.delivered,
  waiting: waiting(progress),
  retrying: progress.retrying,
  expired: progress.expired,
  dead: progress.dead,
  gone: progress.gone,
  cancelled: progress.cancelled ?? 0,
  shards: progress.shards,
  shards_done: progress.shardsDone,
  last_modified: progress.lastModified,
  accepted_at: progress.acceptedAt,
  expires_at: progress.expiresAt,
  ...(progress.withoutSubscription === undefined
    ? {}
    : { without_subscription: progress.withoutSubscription })
})

/** The counts of a broadcast that is not planned yet, or rejected. */
const unplanned = ({ stored }: Origin, expiresAt: number): Progress => {
  const plan = {
    broadcast: stored.seq,
    depth: 0,
    shards: 0,
    floor: { subscriptions: 0, registrations: 0 },
    acceptedAt: stored.at,
    expiresAt,
    at: stored.at
  }
  return startProgress(plan, 0)
}

const timesOf = (schedule: Schedule | undefined) =>
  schedule === undefined
    ? {}
    : {
        at: schedule.at,
        ...(schedule.startedAt === undefined ? {} : { started_at: schedule.startedAt })
      }

const changedBy = (change: Stored | undefined): Pick<View, "changed_by" | "because"> => {
  switch (change?.message.type) {
    case "broadcast.paused": {
      const { because, by } = change.message
      return { changed_by: by, ...(because && { because }) }
    }
    case "broadcast.resumed":
    case "broadcast.cancelled":
      return { changed_by: change.message.by }
    default:
      return {}
  }
}

const detailsOf = (standing: Standing): typeof BroadcastDetails.Type => {
  const details = standing.progress?.details ?? noDetails
  const { firstDeliveredAt, lastDeliveredAt, reasons, services } = details
  const locales = localesIn(details)
  return {
    reasons: Object.fromEntries(Object.entries(reasons).filter(([, count]) => count > 0)),
    retries: retriesOf(details, standing),
    push_services: Object.fromEntries(
      Object.entries(services).map(([name, service]) => [name, serviceOf(service)])
    ),
    ...(locales !== undefined && {
      locales: Object.fromEntries(
        Object.entries(locales).map(([locale, fates]) => [locale, outcomesOf(fates)])
      )
    }),
    ...(firstDeliveredAt !== undefined && { first_delivered_at: firstDeliveredAt }),
    ...(lastDeliveredAt !== undefined && { last_delivered_at: lastDeliveredAt }),
    ...answersOf(Object.values(services).map(({ durations }) => durations))
  }
}

/** While a broadcast is paused nothing is tried, and its pushes wait for as long as it lives. */
const retriesOf = ({ retries = {} }: Details, { expiresAt, state }: Standing) =>
  Object.entries(retries)
    .filter(([, { pushes }]) => pushes > 0)
    .sort(([, a], [, b]) => b.pushes - a.pushes)
    .map(([reason, { pushes, until }]) => ({
      ...{ reason, pushes },
      until: state === "paused" ? expiresAt : until
    }))

const serviceOf = ({ durations, fates }: Details["services"][string]) => ({
  ...outcomesOf(fates),
  ...answersOf([durations])
})

const outcomesOf = (fates: CountsBy): typeof Outcomes.Type => {
  const { cancelled = 0, dead = 0, delivered = 0, expired = 0, gone = 0, retrying = 0 } = fates
  return { delivered, retrying, expired, dead, gone, cancelled }
}

const answersOf = (durations: ReadonlyArray<Durations>): typeof Answers.Type => {
  const [p50, p99] = [quantile(durations, 0.5), quantile(durations, 0.99)]
  return p50 === undefined || p99 === undefined ? {} : { p50_millis: p50, p99_millis: p99 }
}
