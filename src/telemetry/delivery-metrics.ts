// Metrics of delivery: pushes, push services, strikes. Labels have few values, and none that a
// client chose: no endpoint, key, user or path. A process counts what it does itself; Prometheus
// adds up.
import * as Effect from "effect/Effect"
import { Settings } from "#config"
import { Fate, type PushResult } from "#domain/outcome.ts"
import {
  isThrottling,
  type Reason,
  refusalReasons,
  type StrikeReason,
  strikeReasons
} from "#domain/reason.ts"
import { hostMatcher, knownPushHosts } from "#domain/subscription/endpoint.ts"
import { counter, gauge, histogram } from "./series.ts"

// From an immediate delivery to the end of the longest retries.
const latencySecondsBounds = [
  0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600, 3_600, 86_400
]
const countPush = counter(
  "bellcast_pushes_total",
  "Recorded outcomes by fate and push service; a push that is retried counts as " +
    "retrying too, once for each such attempt",
  { fate: Fate.literals, host: "given" }
)
const attemptResults = ["accepted", "gone", "throttled", "refused", "failed"] as const
const countAttempt = counter(
  "bellcast_push_attempts_total",
  "Pushes sent to a push service by result: accepted, gone, throttled (429), refused (our " +
    "VAPID key or token), failed (all else)",
  { result: attemptResults, host: "given" }
)
const observe = histogram(
  "bellcast_push_latency_seconds",
  "From the acceptance of a broadcast until a push has its last outcome",
  latencySecondsBounds
)
const countStruck = counter(
  "bellcast_subscription_strikes_total",
  "Strikes against subscriptions that could not be reached while others could, by " +
    "cause and push service",
  { host: "given", cause: strikeReasons }
)
const countSuspended = counter(
  "bellcast_subscriptions_suspended_total",
  "Subscriptions that nothing is sent to any more, by cause and push service",
  { host: "given", cause: strikeReasons }
)
const showCredentials = gauge(
  "bellcast_push_service_credentials_state",
  "Whether a push service takes our credentials: 0 closed, it does; 1 half-open, the " +
    "next push will tell; 2 open, pushes wait"
)
const showConnectivity = gauge(
  "bellcast_push_service_connectivity_state",
  "Whether a push service answers at all: 0 closed, it does; 1 half-open, the next " +
    "push will tell; 2 open, pushes wait"
)
const showHolding = gauge(
  "bellcast_push_service_guard_holding",
  "1 while a push service says of most subscriptions that they are gone, and is not believed"
)
const showWindow = gauge(
  "bellcast_push_service_window_pushes",
  "Pushes that may be under way to a push service at once: at most " +
    "BELLCAST_PUSHES_UNDER_WAY_MAX, less while few are needed or it throttles us"
)

/** Shows how many processes of this one's group deliver, this one included. */
export const showProcesses = gauge(
  "bellcast_delivery_processes",
  "Processes that deliver: this one, and those that it has started"
)
/** Counts the deaths of processes that this one has started. */
export const countDeath = counter(
  "bellcast_delivery_process_deaths_total",
  "Processes that this one has started to deliver, and that ended by themselves; each is started " +
    "again",
  {}
)

const otherHost = "other"

/** The entries of the allow-list, those of the browsers first. */
const namedHosts = (hosts: ReadonlyArray<string>): ReadonlyArray<string> =>
  [...knownPushHosts, ...hosts].filter((pattern) => pattern !== "*")

/** Every label of a host. */
const hostLabels = (hosts: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set([...namedHosts(hosts).map((pattern) => pattern.toLowerCase()), otherHost])
]

/**
 * The label of a host: the entry of the allow-list that it falls under, or "other" if only `*`
 * allows it. Subdomains share one label.
 */
export const hostLabel = (hosts: ReadonlyArray<string>): ((host: string) => string) => {
  const named = namedHosts(hosts)
  // A host that stands in the list itself comes before a wildcard.
  const isWild = (pattern: string) => pattern.startsWith("*.")
  const labels = [...named.filter((each) => !isWild(each)), ...named.filter(isWild)].map(
    (pattern) => ({ label: pattern.toLowerCase(), matches: hostMatcher(pattern) })
  )
  return (host) => labels.find(({ matches }) => matches(host))?.label ?? otherHost
}

const refusals: ReadonlyArray<string> = refusalReasons

/** The end of an attempt: whether it was delivered or gone, or why it was not. */
interface AttemptEnd {
  readonly kind: string
  readonly reason: Reason
}

const resultOf = ({ kind, reason }: AttemptEnd): (typeof attemptResults)[number] => {
  if (kind === "delivered") return "accepted"
  if (kind === "gone") return "gone"
  if (isThrottling(reason)) return "throttled"
  return refusals.includes(reason) ? "refused" : "failed"
}

/** Counts attempts and outcomes. */
export const makePushMetrics = Effect.gen(function* () {
  const { pushHosts } = yield* Settings
  const labelOf = hostLabel(pushHosts)
  for (const each of [countPush, countAttempt]) each.fromZero({ host: hostLabels(pushHosts) })
  return {
    attempted: (host: string, end: AttemptEnd): void =>
      countAttempt({ result: resultOf(end), host: labelOf(host) }, 1),
    recorded: (host: string, { at, fate }: PushResult, acceptedAt: number): void => {
      countPush({ fate, host: labelOf(host) }, 1)
      if (fate !== "retrying") observe({ fate }, Math.max(0, at - acceptedAt) / 1000)
    }
  }
})

/** State of a push service in this process: its breakers, its guard, its window. */
export interface PushServiceState {
  readonly credentials: "closed" | "half-open" | "open"
  readonly connectivity: "closed" | "half-open" | "open"
  readonly holding: boolean
  readonly window: number
}

const breakerStates = ["closed", "half-open", "open"]

/** Shows the states of push services. If several share a label, the worst of each is shown. */
export const makePushServiceMetrics = Effect.gen(function* () {
  const labelOf = hostLabel((yield* Settings).pushHosts)
  return {
    show: (
      pushServices: Iterable<{ readonly host: string; readonly state: PushServiceState }>
    ): void => {
      for (const [host, list] of Map.groupBy(pushServices, (each) => labelOf(each.host))) {
        const worst = (metric: typeof showHolding, read: (state: PushServiceState) => number) =>
          metric({ host }, Math.max(...list.map(({ state }) => read(state))))
        worst(showCredentials, ({ credentials }) => breakerStates.indexOf(credentials))
        worst(showConnectivity, ({ connectivity }) => breakerStates.indexOf(connectivity))
        worst(showHolding, ({ holding }) => Number(holding))
        showWindow({ host }, Math.min(...list.map(({ state }) => state.window)))
      }
    }
  }
})

/** Counts strikes and suspensions. */
export const makeStrikeMetrics = Effect.gen(function* () {
  const { pushHosts } = yield* Settings
  const labelOf = hostLabel(pushHosts)
  for (const each of [countStruck, countSuspended]) each.fromZero({ host: hostLabels(pushHosts) })
  return {
    struck: (host: string, cause: StrikeReason): void =>
      countStruck({ host: labelOf(host), cause }, 1),
    suspended: (host: string, cause: StrikeReason): void =>
      countSuspended({ host: labelOf(host), cause }, 1)
  }
})
