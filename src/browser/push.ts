// The data of a broadcast with `web_push: 8030`, Declarative Web Push: Safari shows it by itself,
// other browsers by worker.js. Stricter than the W3C's Push API where a browser drops a push: the
// first Safari refuses relative URLs and options of another type. Unknown members pass.
import * as Schema from "effect/Schema"

const optional = Schema.optionalKey
const text = Schema.String.pipe(Schema.check(Schema.isNonEmpty({ message: "Required" })))
const whole = Schema.Int.pipe(Schema.check(Schema.isGreaterThanOrEqualTo(0)))
const anything = Schema.Record(Schema.String, Schema.Unknown)

const isLocal = (host: string): boolean => ["localhost", "127.0.0.1", "[::1]"].includes(host)

const isUrl = (address: string): boolean => {
  // Without `//` a worker takes an address for one below its scope.
  if (!/^https?:\/\//i.test(address)) return false
  const { hostname = "", protocol } = URL.parse(address) ?? {}
  return protocol === "https:" || (protocol === "http:" && isLocal(hostname))
}

const url = Schema.String.pipe(
  Schema.check(
    Schema.makeFilter(
      (address) => isUrl(address) || "Must be an absolute URL with https, on this machine http",
      { toJsonSchema: () => [{ format: "uri", pattern: "^[Hh][Tt][Tt][Pp][Ss]?://" }, true] }
    )
  )
)

const Action = Schema.StructWithRest(
  Schema.Struct({ action: text, title: text, navigate: url, icon: optional(url) }),
  [anything]
).annotate({ identifier: "NotificationAction" })

const notificationMembers = Schema.Struct({
  title: text,
  /** The page that a click opens. */
  navigate: url,
  body: optional(Schema.String),
  lang: optional(Schema.String),
  dir: optional(Schema.Literals(["auto", "ltr", "rtl"])),
  tag: optional(Schema.String),
  icon: optional(url),
  image: optional(url),
  badge: optional(url),
  silent: optional(Schema.Boolean),
  renotify: optional(Schema.Boolean),
  requireInteraction: optional(Schema.Boolean),
  timestamp: optional(whole),
  data: optional(Schema.Unknown),
  /** The first Safari reads it here, later ones beside `notification`. */
  app_badge: optional(whole),
  vibrate: optional(Schema.Array(whole)),
  actions: optional(Schema.Array(Action))
})

/** Combinations that the Notifications API throws at. */
const isShown = Schema.makeFilter<typeof notificationMembers.Type>(
  ({ renotify, silent, tag = "", vibrate }) => [
    ...(renotify === true && tag === "" ? [{ path: ["tag"], issue: "Required by renotify" }] : []),
    ...(silent === true && vibrate !== undefined
      ? [{ path: ["vibrate"], issue: "Must be absent where silent is true" }]
      : [])
  ],
  { toJsonSchema: () => [{}, true] }
)

const marker = 8030

/** Declarative Web Push. */
export const Push = Schema.StructWithRest(
  Schema.Struct({
    web_push: Schema.Literal(marker),
    notification: Schema.StructWithRest(notificationMembers, [anything])
      .pipe(Schema.check(isShown))
      .annotate({ identifier: "Notification" }),
    mutable: optional(Schema.Boolean),
    app_badge: optional(whole)
  }),
  [anything]
).annotate({ identifier: "DeclarativePush" })

/** The JSON Schema of any other data. */
export const OtherData = {
  type: "object",
  description: "For a worker of the site: anything but web_push: 8030",
  additionalProperties: true,
  not: { type: "object", required: ["web_push"], properties: { web_push: { const: marker } } }
}

const decode = Schema.decodeUnknownResult(Push)

/** Data of a broadcast: free, unless it has `web_push: 8030`. */
export const PushData = anything.pipe(
  Schema.check(
    Schema.makeFilter<typeof anything.Type>(
      (data, _, options) => {
        const result = data["web_push"] === marker ? decode(data, options) : undefined
        return result?._tag === "Failure" ? result.failure.issue : undefined
      },
      {
        // Not `if` and `then`, of which generators of clients make no types.
        toJsonSchema: () => ({
          anyOf: [{ $ref: "#/$defs/DeclarativePush" }, { $ref: "#/$defs/OtherData" }]
        })
      }
    )
  )
)

/** The example of the API description. */
export const pushExample = {
  data: {
    web_push: marker,
    notification: { title: "Hello", body: "from Bellcast", navigate: "https://example.org/" }
  }
}
