// Every metric there is, and how each is counted. Labels are few and bounded: no endpoint, key, user or path that a client chose. A process
// counts what it does itself; who gathers them adds up.
import { Context, Effect, Metric } from "effect"
import { Settings } from "#config"
import { knownPushHosts } from "#domain/endpoint.ts"
import type { PushResult } from "#domain/outcome.ts"
import type { StrikeReason } from "#domain/reason.ts"

// From an answer at once to the end of the longest retries.
const latencyMillisBounds = [
  10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 600_000, 3_600_000,
  86_400_000
]
const requestSecondsBounds = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10
]

const pushes = Metric.counter("bellcast_pushes_total", {
  description:
    "Recorded outcomes by fate and push service; a push that is retried counts as retrying too, once for each such attempt",
  incremental: true
})
const attempts = Metric.counter("bellcast_push_attempts_total", {
  description: "Pushes sent to a push service, whatever came of it",
  incremental: true
})
const latency = Metric.histogram("bellcast_push_latency_milliseconds", {
  description: "From the acceptance of a broadcast until a push has its last outcome",
  boundaries: latencyMillisBounds
})
const struck = Metric.counter("bellcast_subscription_strikes_total", {
  description:
    "Strikes against subscriptions that could not be reached while others could, by cause and push service",
  incremental: true
})
const suspended = Metric.counter("bellcast_subscriptions_suspended_total", {
  description: "Subscriptions that nothing is sent to any more, by cause and push service",
  incremental: true
})
const laneBreaker = Metric.gauge("bellcast_lane_breaker_state", {
  description:
    "Whether a push service takes our credentials: 0 closed, it does; 1 half-open, the next push will tell; 2 open, pushes wait"
})
const laneReach = Metric.gauge("bellcast_lane_reach_state", {
  description:
    "Whether a push service answers at all: 0 closed, it does; 1 half-open, the next push will tell; 2 open, pushes wait"
})
const laneHolding = Metric.gauge("bellcast_lane_guard_holding", {
  description:
    "1 while a push service says of most subscriptions that they are gone, and is not believed"
})
const laneWindow = Metric.gauge("bellcast_lane_window_pushes", {
  description:
    "Pushes that may be under way to a push service at once: at most BELLCAST_PUSHES_UNDER_WAY_MAX, less while few are needed or it throttles us"
})
const oldestPush = Metric.gauge("bellcast_oldest_push_age_seconds", {
  description:
    "How long ago the oldest broadcast was accepted of which pushes wait, first tries or others; 0 where none waits. Of the whole service"
})
const pendingJobs = Metric.gauge("bellcast_pending_jobs", {
  description:
    "Broadcasts to be cut up (planner), shards to be delivered (deliver), pushes to be tried again (retry). Of the whole service"
})
const appended = Metric.counter("bellcast_stream_messages_total", {
  description: "Messages ever appended to a stream. Of the whole service",
  incremental: true
})
const streamBytes = Metric.gauge("bellcast_stream_bytes", {
  description: "Bytes that a stream, or the stream behind a bucket, holds. Of the whole service"
})
const streamBytesMax = Metric.gauge("bellcast_stream_bytes_max", {
  description: "Bytes a stream may hold; full, it refuses. Of the whole service"
})
const streamFull = Metric.gauge("bellcast_stream_full", {
  description:
    "1 while a stream has less than 5 % of its bytes left, and requests that make it grow are refused. Of the whole service"
})
const requests = Metric.counter("bellcast_http_requests_total", {
  description:
    "HTTP requests by method, endpoint and status; those inside a batch count one by one as well",
  incremental: true
})
const requestDuration = Metric.histogram("bellcast_http_request_duration_seconds", {
  description: "How long HTTP requests take",
  boundaries: requestSecondsBounds
})

const turnedAway = Metric.counter("bellcast_http_turned_away_total", {
  description:
    "Connections and requests turned away, by the bound that they met: connections, address, pipelined, unread",
  incremental: true
})

/** One series of a metric for each combination of labels, made once: labels are few, and updates many. */
const series = <Input, State>(
  metric: Metric.Metric<Input, State>,
  context: Context.Context<never>
) => {
  const known = new Map<string, Metric.Metric<Input, State>>()
  return (labels: Readonly<Record<string, string>>, input: Input): void => {
    const key = Object.values(labels).join(" ")
    let one = known.get(key)
    if (one === undefined) {
      one = Metric.withAttributes(metric, labels)
      known.set(key, one)
    }
    one.updateUnsafe(input, context)
  }
}

/** The entry of the allow-list that a host falls under, so that its subdomains are one; whatever `*` lets in is "other". */
export const hostLabel = (hosts: ReadonlyArray<string>): ((host: string) => string) => {
  const patterns = [...knownPushHosts, ...hosts]
    .filter((pattern) => pattern !== "*")
    .map((pattern) => pattern.toLowerCase())
  return (host) =>
    patterns.find((pattern) => host === pattern) ??
    patterns.find((pattern) => pattern.startsWith("*.") && host.endsWith(pattern.slice(1))) ??
    "other"
}

/** What delivery counts. */
export const makePushMetrics = Effect.gen(function* () {
  const context = yield* Effect.context<never>()
  const labelOf = hostLabel((yield* Settings).pushHosts)
  const countPush = series(pushes, context)
  const countAttempt = series(attempts, context)
  const observe = series(latency, context)
  return {
    attempted: (host: string): void => countAttempt({ host: labelOf(host) }, 1),
    recorded: (host: string, { at, fate }: PushResult, acceptedAt: number): void => {
      countPush({ fate, host: labelOf(host) }, 1)
      if (fate !== "retrying") observe({ fate }, Math.max(0, at - acceptedAt))
    }
  }
})

/** As an operator sees what is known of a push service. */
export interface PushServiceState {
  readonly breaker: "closed" | "half-open" | "open"
  readonly reach: "closed" | "half-open" | "open"
  readonly holding: boolean
  readonly window: number
}

const breakerStates = ["closed", "half-open", "open"]

/** The lanes as they are now; where one label stands for several, the worst. */
export const makePushServiceMetrics = Effect.gen(function* () {
  const context = yield* Effect.context<never>()
  const labelOf = hostLabel((yield* Settings).pushHosts)
  const [showBreaker, showReach] = [series(laneBreaker, context), series(laneReach, context)]
  const [showHolding, showWindow] = [series(laneHolding, context), series(laneWindow, context)]
  return {
    show: (lanes: Iterable<{ readonly host: string; readonly state: PushServiceState }>): void => {
      const worst = new Map<
        string,
        { breaker: number; reach: number; holding: number; window: number }
      >()
      for (const { host, state } of lanes) {
        const label = labelOf(host)
        const known = worst.get(label) ?? {
          breaker: 0,
          reach: 0,
          holding: 0,
          window: Number.POSITIVE_INFINITY
        }
        worst.set(label, {
          breaker: Math.max(known.breaker, breakerStates.indexOf(state.breaker)),
          reach: Math.max(known.reach, breakerStates.indexOf(state.reach)),
          holding: Math.max(known.holding, state.holding ? 1 : 0),
          window: Math.min(known.window, state.window)
        })
      }
      for (const [host, { breaker, holding, reach, window }] of worst) {
        showBreaker({ host }, breaker)
        showReach({ host }, reach)
        showHolding({ host }, holding)
        showWindow({ host }, window)
      }
    }
  }
})

/** What delivery holds against subscriptions. */
export const makeStrikeMetrics = Effect.gen(function* () {
  const context = yield* Effect.context<never>()
  const labelOf = hostLabel((yield* Settings).pushHosts)
  const countStruck = series(struck, context)
  const countSuspended = series(suspended, context)
  return {
    struck: (host: string, cause: StrikeReason): void =>
      countStruck({ host: labelOf(host), cause }, 1),
    suspended: (host: string, cause: StrikeReason): void =>
      countSuspended({ host: labelOf(host), cause }, 1)
  }
})

/** What waits, as the streams know it. */
export interface BacklogState {
  readonly oldestPushSeconds: number
  readonly jobs: ReadonlyArray<{ readonly consumer: string; readonly messages: number }>
  readonly appended: ReadonlyArray<{ readonly stream: string; readonly messages: number }>
}

/** What waits, by the last look; what is not known any more is no number. */
export const makeBacklogMetrics = () => {
  const context = Context.empty()
  const [showJobs, countAppended] = [series(pendingJobs, context), series(appended, context)]
  const last: { jobs: BacklogState["jobs"]; appended: Map<string, number> } = {
    jobs: [],
    appended: new Map()
  }
  return {
    show: (state: BacklogState): void => {
      last.jobs = state.jobs
      oldestPush.updateUnsafe(state.oldestPushSeconds, context)
      for (const { consumer, messages } of state.jobs) showJobs({ consumer }, messages)
      for (const { messages, stream } of state.appended) {
        // A counter that starts anew is one that fell to zero: so is a stream that was.
        countAppended({ stream }, Math.max(0, messages - (last.appended.get(stream) ?? 0)))
        last.appended.set(stream, messages)
      }
    },
    unknown: (): void => {
      oldestPush.updateUnsafe(Number.NaN, context)
      for (const { consumer } of last.jobs) showJobs({ consumer }, Number.NaN)
    }
  }
}

/** How full streams and the streams behind buckets are, by the latest look. */
export const makeRoomMetrics = () => {
  const context = Context.empty()
  const [showBytes, showBytesMax] = [series(streamBytes, context), series(streamBytesMax, context)]
  const showFull = series(streamFull, context)
  return (
    rooms: ReadonlyArray<{
      readonly stream: string
      readonly bytes: number
      readonly bytesMax: number
      readonly full: boolean
    }>
  ): void => {
    for (const { bytes, bytesMax, full, stream } of rooms) {
      showBytes({ stream }, bytes)
      showBytesMax({ stream }, bytesMax)
      showFull({ stream }, full ? 1 : 0)
    }
  }
}

const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])

const noContext = Context.empty()
const countRequest = series(requests, noContext)
const observeRequest = series(requestDuration, noContext)
const countTurnedAway = series(turnedAway, noContext)

/**
 * The bounds on HTTP connections: in all, per address, requests that wait on one connection, and
 * answers that nobody reads.
 */
export type HttpBound = "connections" | "address" | "pipelined" | "unread"

/** Counts a connection or request that met a bound. */
export const httpTurnedAway = (bound: HttpBound): void => countTurnedAway({ bound }, 1)

/** Counts a request that was answered. `endpoint` is its template, never the path that came. */
export const requestAnswered = (
  method: string,
  endpoint: string,
  status: number,
  millis: number
): void => {
  const named = methods.has(method) ? method : "other"
  countRequest({ method: named, endpoint, status: String(status) }, 1)
  observeRequest({ method: named, endpoint }, Math.max(0, millis) / 1000)
}
