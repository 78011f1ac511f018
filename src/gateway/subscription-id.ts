// The id of a subscription: SHA-256 of the endpoint as JSON text in ASCII, quotes included.
import { createHash } from "node:crypto"

/** JSON.stringify leaves everything beyond ASCII, and DEL, as it is; the id is defined over the escaped form. */
const asciiJson = (text: string): string =>
  JSON.stringify(text).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

export const subscriptionId = (endpoint: string): string => createHash("sha256").update(asciiJson(endpoint), "ascii").digest("hex")

/** The syntax of ids in paths and bodies. */
export const isId = (id: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(id)
