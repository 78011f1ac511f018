// Metrics of identification.
import { Metric } from "effect"
import { series } from "./series.ts"

const authentications = Metric.counter("bellcast_authentications_total", {
  description:
    "Credentials that a policy looked at, by policy and result: known, invalid, unavailable",
  incremental: true
})

const count = series(authentications)

/**
 * What a policy said of credentials. `unavailable`: it could not say, or the address had sent too
 * many wrong ones.
 */
export type AuthenticationResult = "known" | "invalid" | "unavailable"

/** Counts credentials that a policy looked at. `policy`: its name in the settings. */
export const authenticated = (policy: string, result: AuthenticationResult): void =>
  count({ policy, result }, 1)
