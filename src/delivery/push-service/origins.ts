// Which push services this process remembers. Clients choose the hosts of their endpoints, and
// below a wildcard of the allow-list they may make up as many as they like. A made-up host must not
// take the place of a genuine push service, whose token, breakers, connections and evidence would
// be forgotten. So an origin that accepts pushes is never dropped for one that does not.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { makeRoom } from "#basics/bounded.ts"
import { Settings } from "#config"
import { hostLabel } from "#telemetry/delivery-metrics.ts"

/** Origins of a pattern that accepted a push. Microsoft has dozens. */
export const provenMax = 1_000
/** Origins of a pattern that never did; the least recently used one is dropped. */
export const unprovenMax = 250
/** A proven origin without an accepted push for so long may be replaced: a token lives an hour. */
const idleMillis = 60 * 60_000
/** Between two searches for idle origins, each of which looks at all that are proven. */
const searchMillis = 60_000
/** The memory of one origin in this process: a value for each {@link Table}. */
export class Origin {
  /** Scheme, host and port, as endpoints have them. */
  readonly name: string
  readonly values: Array<unknown> = []
  /** It accepted a push, and is remembered for that. */
  isProven = false
  acceptedAt = Number.NEGATIVE_INFINITY
  /** Whether the last push to it got a response. Undefined: none was sent. */
  responds: boolean | undefined
  readonly #pattern: Pattern

  constructor(name: string, pattern: Pattern) {
    this.name = name
    this.#pattern = pattern
  }

  /** Notes that it is used. */
  used(): void {
    if (!this.isProven) this.#pattern.used(this)
  }

  /** Notes whether a push got a response. */
  noteResponse(came: boolean): void {
    this.responds = came
  }

  /** Notes an accepted push. `now`: by the monotonic clock. */
  accepted(now: number): void {
    this.acceptedAt = now
    if (!this.isProven) this.#pattern.prove(this, now)
  }
}

/** The origins below one pattern of the allow-list. They displace none of another pattern. */
class Pattern {
  readonly #proven = new Set<Origin>()
  /** In the order of their last use. */
  readonly #unproven = new Set<Origin>()
  readonly #remember: (origin: Origin) => void
  readonly #forget: (origin: Origin) => void
  #searchAt = Number.NEGATIVE_INFINITY

  constructor(remember: (origin: Origin) => void, forget: (origin: Origin) => void) {
    this.#remember = remember
    this.#forget = forget
  }

  /** Notes that an unproven origin is used. */
  used(origin: Origin): void {
    if (!this.#unproven.delete(origin)) makeRoom(this.#unproven, unprovenMax, this.#forget)
    this.#unproven.add(origin)
  }

  prove(origin: Origin, now: number): void {
    if (this.#proven.size >= provenMax && now >= this.#searchAt) {
      this.#searchAt = now + searchMillis
      for (const each of this.#proven) if (now - each.acceptedAt >= idleMillis) this.#drop(each)
    }
    if (this.#proven.size >= provenMax) return
    this.#unproven.delete(origin)
    this.#proven.add(origin)
    origin.isProven = true
    // It may have been forgotten while the push was under way.
    this.#remember(origin)
  }

  #drop(origin: Origin): void {
    this.#proven.delete(origin)
    origin.isProven = false
    this.#forget(origin)
  }
}

/** A value for each origin, made when it is first asked for, and dropped with its origin. */
export interface Table<A> {
  readonly of: (origin: string) => A
  readonly all: () => Iterable<A>
}

/** What hosts have together, or one host alone. */
export interface Share {
  readonly name: string
  readonly isOwn: boolean
}

/** `patternOf` returns the entry of the allow-list that a host falls under. */
export const makeOrigins = (patternOf: (host: string) => string) => {
  const origins = new Map<string, Origin>()
  const patterns = new Map<string, Pattern>()
  const drops: Array<(value: unknown) => void> = []

  const forget = (origin: Origin): void => {
    if (origins.get(origin.name) === origin) origins.delete(origin.name)
    for (const [i, value] of origin.values.entries()) if (value !== undefined) drops[i]!(value)
  }
  const patternAt = (host: string): Pattern => {
    const name = patternOf(host)
    const known = patterns.get(name)
    if (known !== undefined) return known
    const made = new Pattern((origin) => void origins.set(origin.name, origin), forget)
    patterns.set(name, made)
    return made
  }
  const originOf = (name: string): Origin => {
    const known = origins.get(name)
    const origin = known ?? new Origin(name, patternAt(new URL(name).hostname))
    origin.used()
    if (known === undefined) origins.set(name, origin)
    return origin
  }

  return {
    /**
     * A table of all origins that are remembered. `dropped` is called with the value of an origin
     * that is forgotten.
     */
    table: <A extends object>(
      make: (origin: Origin) => A,
      dropped: (value: A) => void = () => {}
    ): Table<A> => {
      const at = drops.push(dropped as (value: unknown) => void) - 1
      return {
        of: (name) => {
          const origin = originOf(name)
          const known = origin.values[at] as A | undefined
          if (known !== undefined) return known
          const made = make(origin)
          origin.values[at] = made
          return made
        },
        all: () =>
          [...origins.values()].flatMap(({ values }) => (values[at] as A | undefined) ?? [])
      }
    },

    /**
     * Returns the share of a host, with its port, in what there is for retries. Hosts that respond
     * have one each. Of the others below a pattern, those whose last push got no response share
     * one, and those without a push share another: made-up hosts must not keep a genuine one from
     * its first push.
     */
    shareOf: (host: string): Share => {
      // Loopback endpoints, in development, may be plain http.
      const origin = origins.get(`https://${host}`) ?? origins.get(`http://${host}`)
      const { isProven = false, responds } = origin ?? {}
      if (isProven || responds === true) return { name: host, isOwn: true }
      const kind = responds === undefined ? "new" : "silent"
      const hostname = URL.parse(`https://${host}`)?.hostname ?? ""
      return { name: `${kind} ${patternOf(hostname)}`, isOwn: false }
    }
  }
}

export class Origins extends Context.Service<Origins, ReturnType<typeof makeOrigins>>()(
  "bellcast/delivery/Origins"
) {
  static readonly layer = Layer.effect(
    Origins,
    Effect.map(Settings, ({ pushHosts }) => makeOrigins(hostLabel(pushHosts)))
  )
}
