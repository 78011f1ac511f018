// The id of a subscription: the SHA-256 of the endpoint as a JSON text in ASCII, with its quotes.
import { jsonHash } from "#basics/json-hash.ts"

export const subscriptionId = (endpoint: string): string => jsonHash(endpoint)

/** Whether a text has the syntax of ids in paths and bodies. */
export const isId = (id: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(id)
