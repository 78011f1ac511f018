// Endpoints that say what the server is: GET / with what it can do and who the caller is,
// GET /__version__ with what is deployed, and GET /contribute.json.
import { readFileSync } from "node:fs"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { isObject, type JsonObject } from "#basics/json.ts"
import { type Caller, Identity } from "#identity/identity.ts"
import type { Policy } from "#identity/policy.ts"
import { ok, refuse } from "../http/response.ts"
import { docsUrl, expiringIn, noStore } from "../http/response-headers.ts"
import { httpApiVersion, projectVersion } from "../http/version.ts"
import { operation } from "../operation.ts"
import { isOperator, mayUseUsers } from "../rights.ts"
import { GatewaySettings } from "../settings.ts"
import { VapidPublicKeys } from "../vapid-public-keys.ts"

const Root = Schema.Struct({
  project_name: Schema.String,
  project_version: Schema.String,
  http_api_version: Schema.String,
  project_docs: Schema.String,
  url: Schema.String,
  eos: Schema.optionalKey(Schema.String),
  settings: Schema.Struct({
    batch_enabled: Schema.Boolean,
    batch_max_requests: Schema.Int,
    readonly: Schema.Boolean
  }),
  capabilities: Schema.Record(
    Schema.String,
    Schema.StructWithRest(Schema.Struct({ description: Schema.String, url: Schema.String }), [
      Schema.Record(Schema.String, Schema.Unknown)
    ])
  ),
  user: Schema.optionalKey(
    Schema.Struct({
      id: Schema.String,
      principals: Schema.Array(Schema.String),
      operator: Schema.optionalKey(Schema.Literal(true)),
      users: Schema.optionalKey(Schema.Literal(true))
    })
  )
}).annotate({ identifier: "Root" })

/** With wrong credentials the response has no `user`. */
export const rootGet = operation({
  access: "guest",
  run: Effect.fnUntraced(function* (_, { caller, rootUrl }) {
    const identity = yield* Identity
    const settings = yield* GatewaySettings
    const { current } = yield* VapidPublicKeys
    const policies = Object.fromEntries(
      identity.policies.map(({ capability, name }) => [name, capability])
    )
    const webpush = {
      description: "Web Push to everybody who is registered to a channel.",
      url: `${rootUrl}/__api__`,
      vapid_public_key: current
    }
    const body = {
      project_name: settings.projectName,
      project_version: projectVersion,
      http_api_version: httpApiVersion,
      project_docs: docsUrl(settings, rootUrl),
      url: rootUrl,
      ...(Option.isSome(settings.eos) ? { eos: settings.eos.value } : {}),
      settings: {
        batch_enabled: settings.batchEnabled,
        batch_max_requests: settings.batchMaxRequests,
        readonly: settings.readonly
      },
      capabilities: { ...policies, webpush },
      ...(caller === undefined ? {} : yield* userOf(caller))
    }
    const now = yield* Clock.currentTimeMillis
    return ok(body, settings.readonly ? cachingOf(identity.policies, now) : noStore)
  }),
  doc: { summary: "What this server is and can do", responses: { 200: Root } }
})

const cacheSecondsWhenReadonly = 86_400

/**
 * The response names the caller, so a cache must not give it to another one. A cache cannot tell
 * callers apart by all headers that a policy may read, cookies among them.
 */
export const cachingOf = (
  policies: ReadonlyArray<Pick<Policy, "isInAuthorization">>,
  now: number
): Record<string, string> =>
  policies.every(({ isInAuthorization }) => isInAuthorization === true)
    ? { ...expiringIn(cacheSecondsWhenReadonly, now), Vary: "Authorization" }
    : noStore

/** The member `user`. A right that the caller has not is not there. */
const userOf = Effect.fnUntraced(function* (caller: Caller) {
  const { id, principals } = caller
  const rights = {
    ...((yield* isOperator(caller)) && { operator: true }),
    ...((yield* mayUseUsers(caller)) && { users: true })
  }
  return { user: { id, principals, ...rights } }
})

/** Read once, at the first request: the file belongs to the code that runs. */
let known: { readonly version: JsonObject | undefined } | undefined

/** From a file that the deployment writes; without the file 404. */
export const versionGet = operation({
  access: "anyone",
  run: Effect.fnUntraced(function* () {
    known ??= { version: readVersion() }
    const { version } = known
    if (version === undefined) return yield* refuse("unknown-url")
    return ok(version)
  }),
  doc: {
    summary: "What is deployed",
    responses: { 200: Schema.Record(Schema.String, Schema.Unknown) },
    errors: [404]
  }
})

/** In the working directory, then beside the code. */
const places = ["version.json", new URL("../../../version.json", import.meta.url)]

const readVersion = (): JsonObject | undefined => {
  for (const place of places) {
    try {
      const json = JSON.parse(readFileSync(place, "utf8")) as unknown
      if (isObject(json)) return json
    } catch {
      // Missing or invalid JSON: try the next place.
    }
  }
  return undefined
}

export const contributeGet = operation({
  access: "anyone",
  run: Effect.fnUntraced(function* (_, { rootUrl }) {
    const settings = yield* GatewaySettings
    return ok({
      name: settings.projectName,
      description:
        "Broadcasts a notification to everybody who is registered to a channel, by Web Push.",
      repository: { license: "MIT", type: "git" },
      participate: { home: docsUrl(settings, rootUrl), docs: docsUrl(settings, rootUrl) },
      keywords: ["web push", "broadcast", "notifications", "nats", "jetstream"]
    })
  }),
  doc: {
    summary: "How to take part in the project",
    responses: { 200: Schema.Record(Schema.String, Schema.Unknown) }
  }
})
