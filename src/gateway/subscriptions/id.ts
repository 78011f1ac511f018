// The id of a subscription: SHA-256 of the endpoint as JSON text in ASCII, quotes included.
import { hash } from "node:crypto"
import { asciiJson } from "#domain/json.ts"

export const subscriptionId = (endpoint: string): string =>
  hash("sha256", asciiJson(endpoint), "hex")

/** The syntax of ids in paths and bodies. */
export const isId = (id: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(id)
