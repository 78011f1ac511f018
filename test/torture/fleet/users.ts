// The users of a run: their password, ids and pseudonyms, as src/identity/README.md describes them.
import { createHmac } from "node:crypto"

/** Makes the ids of users and their pseudonyms. */
export const useridSecret = "a secret of the torture rig, of enough bytes"

/** The password of every user. */
export const password = "torture"

/** Publishes on every channel. */
export const publisher = "publisher"

/** The user who redrives broadcasts. */
export const operator = "operator"

const hmac = (key: string, text: string) => createHmac("sha256", key).update(text)

export const idOf = (name: string): string =>
  `basicauth:${hmac(useridSecret, `${name}:${password}`).digest("hex")}`

export const pseudonymOf = (id: string): string =>
  hmac(hmac(useridSecret, "bellcast pseudonym").digest("hex"), id).digest("base64url").slice(0, 22)
