// Subscriptions and tombstones as clients see them, and their schemas.
import * as Schema from "effect/Schema"
import type { JsonObject } from "#basics/json.ts"
import { Locale } from "#domain/broadcast.ts"
import type { SubscriptionList } from "#domain/subscription/subscription.ts"

const text = Schema.String.pipe(Schema.check(Schema.isNonEmpty({ message: "Required" })))
/** In characters. */
const labelMax = 100
const Label = Schema.String.pipe(Schema.check(Schema.isMaxLength(labelMax)))
const anything = Schema.Record(Schema.String, Schema.Unknown)

/** The body of POST and PUT. Clients may store other members; of `keys` only the two are stored. */
export const SubscriptionBody = Schema.Struct({
  data: Schema.StructWithRest(
    Schema.Struct({
      endpoint: text,
      keys: Schema.StructWithRest(Schema.Struct({ auth: text, p256dh: text }), [anything]),
      id: Schema.optionalKey(Schema.String),
      /** The application server key. Default: the current one, or that of one that moves. */
      vapid_public_key: Schema.optionalKey(text),
      locale: Schema.optionalKey(Locale),
      /** The user's name for the browser. */
      label: Schema.optionalKey(Label)
    }),
    [anything]
  )
})

/** The body of POST. `replaces`: the id of another subscription of the caller, which is removed. */
export const PostBody = Schema.Struct({
  ...SubscriptionBody.fields,
  replaces: Schema.optionalKey(text)
})

/** The body of POST .../replace. `renewal`: the secret of the former subscription. */
export const RenewalBody = Schema.Struct({ ...SubscriptionBody.fields, renewal: text })

/**
 * The example of the API description, with the keys of RFC 8291 section 5. The server rejects every
 * endpoint below .example with 400: a tool that sends examples must not cause pushes to a real
 * host.
 */
export const subscriptionExample = {
  data: {
    endpoint: "https://push-service.example/made-by-the-browser",
    keys: {
      auth: "BTBZMqHH6r4Tts7J_aSIgg",
      p256dh:
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    }
  }
}

export const SubscriptionObject = Schema.StructWithRest(
  Schema.Struct({
    endpoint: Schema.String,
    keys: Schema.Struct({ auth: Schema.String, p256dh: Schema.String }),
    id: Schema.String,
    last_modified: Schema.Int
  }),
  [anything]
).annotate({ identifier: "Subscription" })

/** An object of a list: `_fields` selects members, a bound on the timestamp adds tombstones. */
export const ListedObject = Schema.StructWithRest(
  Schema.Struct({
    id: Schema.String,
    last_modified: Schema.Int,
    endpoint: Schema.optionalKey(Schema.String),
    keys: Schema.optionalKey(
      Schema.Struct({
        auth: Schema.optionalKey(Schema.String),
        p256dh: Schema.optionalKey(Schema.String)
      })
    ),
    deleted: Schema.optionalKey(Schema.Literal(true))
  }),
  [anything]
).annotate({ identifier: "ListedSubscription" })

export const Tombstone = Schema.Struct({
  id: Schema.String,
  last_modified: Schema.Int,
  deleted: Schema.Literal(true)
}).annotate({ identifier: "Tombstone" })

/** A subscription of a list, with its id and timestamp; undefined when there is none. */
export const viewOf = (list: SubscriptionList, id: string): JsonObject | undefined => {
  const stored = Object.hasOwn(list.subscriptions, id) ? list.subscriptions[id] : undefined
  return stored === undefined
    ? undefined
    : { ...stored.data, id, last_modified: stored.lastModified }
}

export const tombstone = (id: string, lastModified: number): JsonObject => ({
  id,
  last_modified: lastModified,
  deleted: true
})
