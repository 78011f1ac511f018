// The ids and pseudonyms of basic users, as a service with the secrets of tests makes them.
import { basicIds } from "#identity/policies/basicauth.ts"
import { pseudonyms } from "#identity/principals.ts"
import { secretEnvironment } from "./service.ts"

const secret = secretEnvironment.BELLCAST_USERID_HMAC_SECRET
const nameOf = basicIds(secret)
export const pseudonymOf = pseudonyms(secret)

/** The id of a user whose password is `secret`. */
export const idOf = (user: string): string => `basicauth:${nameOf(`${user}:secret`)}`
export const tokenOf = (user: string) => pseudonymOf(idOf(user))
