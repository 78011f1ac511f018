// Whether two puts store the same subscription of a browser. Pure.
import type { SubscriptionData, SubscriptionPut } from "./command.ts"
import { foldedEndpoint } from "./endpoint.ts"

/** Clients may write both alphabets of base64, with padding or without. */
const sameBytes = (a: string, b: string): boolean =>
  a === b || Buffer.from(a, "base64").equals(Buffer.from(b, "base64"))

/** Whether two puts of one endpoint are of the same browser, whoever its user is. */
export const hasSameKeys = (a: SubscriptionData, b: SubscriptionData): boolean =>
  sameBytes(a.keys.auth, b.keys.auth) && sameBytes(a.keys.p256dh, b.keys.p256dh)

/**
 * Whether a put stores the same subscription again: then its generation stays, and pushes that wait
 * for it are sent.
 */
export const isSameBrowser = (
  former: Pick<SubscriptionPut, "data" | "vapidKey">,
  { data, vapidKey }: SubscriptionPut
): boolean =>
  foldedEndpoint(former.data.endpoint) === foldedEndpoint(data.endpoint) &&
  hasSameKeys(former.data, data) &&
  former.vapidKey === vapidKey
