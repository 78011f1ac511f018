// The processes that deliver together: a process and its children, or a process alone. They divide
// among themselves what one process may do (pushes that are sent but not recorded, pushes under way
// to a push service, bytes of caches), so that the bounds of one process hold for all of them
// together. A child signs no token for a push service: it asks its parent.
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Series } from "#telemetry/whole-metrics.ts"

/** A request for a token of an origin and a VAPID public key. */
export interface TokenRequest {
  readonly origin: string
  readonly publicKey: string
  /** The header that the push service refused; undefined: any current one will do. */
  readonly refused?: string
}

/** A token of the parent. */
export interface GivenToken {
  /** The Authorization header: a credential, never log it. */
  readonly header: string
  /** For how long no other one is needed, in milliseconds. */
  readonly freshMillis: number
}

/** The response to a request: a token; "none": no other one may be made now. */
export type TokenResponse = GivenToken | "none"

export interface GroupShape {
  /** The part of a bound that this process has now, of a bound of one process. At least 1. */
  readonly part: (whole: number) => number
  /** Among how many processes bounds are divided now. */
  readonly processes: () => number
  /** Names the group while there are several processes; undefined: there is one. */
  readonly name: () => string | undefined
  /**
   * Calls `apply` now, before the bounds are divided anew, and after. It ends when this process
   * keeps to its part: children begin only then.
   */
  readonly divide: (apply: Effect.Effect<void>) => Effect.Effect<void>
  /**
   * Asks the parent for a token; undefined: it did not respond. No function: there is no parent.
   */
  readonly askToken:
    | ((request: TokenRequest) => Effect.Effect<TokenResponse | undefined>)
    | undefined
  /** Responds to the requests of children from now on. */
  readonly answerTokens: (answer: (request: TokenRequest) => Effect.Effect<TokenResponse>) => void
  /** Series of the children: those of each that runs, and what ended ones have counted. */
  readonly reports: () => ReadonlyArray<ReadonlyArray<Series>>
}

/** A process that has neither a parent nor children. */
export const alone: GroupShape = {
  part: (whole) => whole,
  processes: () => 1,
  name: () => undefined,
  divide: (apply) => apply,
  askToken: undefined,
  answerTokens: () => {},
  reports: () => []
}

export const Group: Context.Reference<GroupShape> = Context.Reference<GroupShape>(
  "bellcast/children/Group",
  { defaultValue: () => alone }
)

/**
 * The part of a bound that each child has. The parent has the rest, which is as much or more.
 */
export const partOfChild = (whole: number, processes: number): number =>
  Math.max(1, Math.floor(whole / processes))

/** The part that the parent has beside its children. */
export const partOfParent = (whole: number, processes: number): number =>
  Math.max(1, whole - (processes - 1) * partOfChild(whole, processes))
