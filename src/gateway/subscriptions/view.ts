// A user's list as clients see it: objects with id and last_modified, tombstones, and the schemas of both.
import { Schema } from "effect"
import type { SubscriptionList } from "#domain/subscription.ts"
import type { JsonObject } from "./listing/value.ts"

const text = Schema.String.pipe(Schema.check(Schema.isNonEmpty({ message: "Required" })))
const anything = Schema.Record(Schema.String, Schema.Unknown)

/** What POST and PUT take. Browsers and clients may store more beside the endpoint; other keys than the two are dropped. */
export const SubscriptionBody = Schema.Struct({
  data: Schema.StructWithRest(
    Schema.Struct({
      endpoint: text,
      keys: Schema.StructWithRest(Schema.Struct({ auth: text, p256dh: text }), [anything]),
      id: Schema.optionalKey(Schema.String),
      /** The application server key it was made with; left out: the current one. */
      vapid_public_key: Schema.optionalKey(text)
    }),
    [anything]
  )
})

/**
 * What the API description shows. No setting allows an endpoint below .example, so this example is
 * refused with 400: a tool that posts examples must not make this server push to a real host.
 * The keys are those of RFC 8291 section 5.
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
)

/** An object of a list: with `_fields` only a part of it, with a bound on the timestamp perhaps a tombstone. */
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
)

export const Tombstone = Schema.Struct({
  id: Schema.String,
  last_modified: Schema.Int,
  deleted: Schema.Literal(true)
})

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
