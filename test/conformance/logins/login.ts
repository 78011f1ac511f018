// How the users of the cases log in: by which policy, with which headers, under which ids.
import type { IdentityProvider } from "#test/identity/provider.ts"

export type Headers = Readonly<Record<string, string>>

/** Credentials by which nobody is known. */
export interface Wrong {
  readonly name: string
  readonly headers: Headers
  /** The WWW-Authenticate of the 401. */
  readonly challenge: string
}

/** An outage of the server on which a policy depends. */
export interface Outage {
  /** A request that gets a 503 during the outage. */
  readonly method: string
  readonly path: string
  readonly headers: Headers
  readonly end: () => void
}

/** The users of a policy, by the texts `user:password` of the cases. */
export interface Users extends AsyncDisposable {
  /** Settings of the gateways. */
  readonly env: Readonly<Record<string, string>>
  /** Headers with the credentials of a user. */
  readonly headersOf: (user: string) => Promise<Headers>
  /** The id that the server must give a user. */
  readonly idOf: (user: string) => string
  readonly wrong: () => Promise<ReadonlyArray<Wrong>>
  /** Begins an outage. Unset: the policy depends on no server. */
  readonly outage?: () => Promise<Outage>
}

/** The gateways that are to know the users. */
export interface Gateways {
  /** Scheme, host and port. */
  readonly origin: string
  /** Their BELLCAST_USERID_HMAC_SECRET. */
  readonly secret: string
}

/** A policy that is the only one of its gateways. */
export interface Login {
  /** The name of its tests. */
  readonly name: string
  readonly policy: string
  /** The WWW-Authenticate of a 401 without credentials. */
  readonly challenge: string
  /** Whether credentials are in Authorization. If not, entries of a batch have its user. */
  readonly isInAuthorization: boolean
  /** Whether only scripts send the credentials: browsers never add them by themselves. */
  readonly isOfScripts: boolean
  /** Whether the heartbeat has a member for the policy. */
  readonly isInHeartbeat: boolean
  /** Set where the settings name the host, which then is not that of the request. */
  readonly namesHost?: true
  readonly start: (gateways: Gateways) => Promise<Users>
}

/** Begins the outage of a provider. */
export const outageOf = (
  provider: IdentityProvider,
  path: string,
  headers: Headers,
  method = "GET"
): Outage => {
  provider.mood = "500"
  return {
    method,
    path,
    headers,
    end: () => {
      provider.mood = "well"
    }
  }
}

export const seconds = (): number => Math.floor(Date.now() / 1000)

/** A function that makes the credentials of each user once, or again after a failure. */
export const oncePerUser = (make: (user: string) => Promise<Headers>): Users["headersOf"] => {
  const made = new Map<string, Promise<Headers>>()
  return (user) => {
    const headers = made.get(user) ?? make(user)
    made.set(user, headers)
    headers.catch(() => made.delete(user))
    return headers
  }
}
