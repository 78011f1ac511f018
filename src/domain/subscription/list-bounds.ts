// Bounds on the size of subscriptions and of their lists. Pure.
import type { SubscriptionPut } from "./command.ts"

/**
 * Bytes of JSON of one subscription that the gateway stores: endpoint, keys and other attributes.
 * Browsers' subscriptions have 300 to 700 bytes, an endpoint at most 2,048 characters. Not a
 * setting: no browser needs more, and the projector holds the lists of many users in memory.
 */
export const subscriptionBytesMax = 4_096

/**
 * Bytes of JSON that a list may grow to; a bucket value takes 1,044,480 with its headers. The
 * gateway stores at most 50 subscriptions of 4 KiB and 1000 tombstones of at most 190 bytes, which
 * is less. Commands that were published straight onto NATS may come near.
 */
export const listBytesMax = 1_040_000
/** Free space that puts of a user must leave for tombstones, strikes and matched keys. */
export const listMarginBytes = 100_000

/** Whether storing `data` at `id` makes a list larger. */
export const growsList = (
  {
    subscriptions
  }: { readonly subscriptions: Readonly<Record<string, { readonly data: object }>> },
  { data, id }: Pick<SubscriptionPut, "data" | "id">
): boolean =>
  !Object.hasOwn(subscriptions, id) ||
  Buffer.byteLength(JSON.stringify(data)) >
    Buffer.byteLength(JSON.stringify(subscriptions[id]!.data))

/** Whether a list has at most so many bytes of JSON. */
export const listFits = (list: object, bytesMax: number): boolean => {
  const text = JSON.stringify(list)
  // No character takes more than three bytes.
  return (
    text.length * 3 <= bytesMax ||
    (text.length <= bytesMax && new TextEncoder().encode(text).length <= bytesMax)
  )
}
