// The id of a subscription: the SHA-256 of the endpoint as a JSON text in ASCII, with its quotes.
import { hash } from "node:crypto"
import { asciiJson } from "#basics/json.ts"

export const subscriptionId = (endpoint: string): string =>
  hash("sha256", asciiJson(endpoint), "hex")

/** Whether a text has the syntax of ids in paths and bodies. */
export const isId = (id: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(id)
