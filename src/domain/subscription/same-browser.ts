// Whether two puts store the same subscription of a browser. Pure.
import type { SubscriptionPut } from "./command.ts"
import { foldedEndpoint } from "./push-services.ts"

/**
 * Whether a put stores the same subscription again: then its generation stays, and pushes that wait
 * for it are sent.
 */
export const isSameBrowser = (
  former: Pick<SubscriptionPut, "data" | "vapidKey">,
  { data, vapidKey }: SubscriptionPut
): boolean =>
  foldedEndpoint(former.data.endpoint) === foldedEndpoint(data.endpoint) &&
  former.data.keys.auth === data.keys.auth &&
  former.data.keys.p256dh === data.keys.p256dh &&
  former.vapidKey === vapidKey
