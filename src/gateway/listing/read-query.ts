// Reads the query string and the preconditions of a list, or of one subscription.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { checkNoBody } from "../http/body.ts"
import { type ErrorDetail, refuse } from "../http/errors.ts"
import { type Preconditions, readPreconditions } from "../http/preconditions.ts"
import type { Call } from "../http/request.ts"
import { invalidToken, isGenuine } from "./page.ts"
import { type Listing, queryPairs, readListing } from "./query.ts"

export interface ListInput {
  readonly listing: Listing
  readonly preconditions: Preconditions
}

/** `removes`: see `Rules` in query.ts. `only`: the parameters that are read; others are ignored. */
export const readQuery = (removes: boolean, only?: ReadonlyArray<string>) =>
  Effect.fnUntraced(function* (call: Call, errors: Array<ErrorDetail>) {
    const { query, request } = call
    const preconditions = readPreconditions(request, errors)
    const pairs = queryPairs(query)
    if (pairs === undefined) return yield* refuse("undecodable-url")
    const read = pairs.filter(([name]) => only?.includes(name) ?? true)
    const now = yield* Clock.currentTimeMillis
    const listing = readListing(read, errors, { now, removes })
    if (listing.token !== undefined && !(yield* isGenuine(listing.token, call)))
      errors.push(invalidToken)
    yield* checkNoBody(request, errors)
    const input: ListInput = { listing, preconditions }
    return input
  })

/** Reads the query string of a list whose order nobody chooses. */
export const readPages = readQuery(false, ["_limit", "_token"])
