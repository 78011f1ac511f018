// Logins of the console: GET /console/config.json says what its login page offers, POST
// /console/session exchanges the one-time token of a site's link for a session, DELETE ends it. All
// else that the console does is done by the API, with the rights of the user who logged in.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { consoleLanguages } from "#browser/serving/files.ts"
import { Settings } from "#config"
import { Identity } from "#identity/identity.ts"
import type { LinkRefused } from "#identity/login/links.ts"
import type { Policy } from "#identity/policy.ts"
import { kindOf } from "#identity/settings.ts"
import { Source } from "#settings/source.ts"
import { readBody } from "../http/request.ts"
import {
  type ApiResponse,
  errorIn,
  errorResponse,
  ok,
  refuseInvalid,
  retryAfter
} from "../http/response.ts"
import { noStore, originOf } from "../http/response-headers.ts"
import { projectVersion, versionPrefix } from "../http/version.ts"
import { operation } from "../operation.ts"

/** A policy by which people may log in at the console. */
interface Login {
  readonly policy: string
  readonly kind: "openid" | "portier" | "proxy" | "basicauth" | "signed"
  /** The login page. It returns to the console's page, with a token in the fragment. */
  readonly url?: string
}

export const configGet = operation({
  access: "anyone",
  run: Effect.fnUntraced(function* (_, { request, rootUrl }) {
    const { policies } = yield* Identity
    const { isDevelopment } = yield* Source
    // Providers know the login pages by the address of the service, which may be on another host.
    const service = `${originOf(yield* Settings, request)}/${versionPrefix}`
    const body = {
      development: isDevelopment,
      // The pages refuse to run elsewhere: a proxy that writes another Host may bring them there.
      origin: new URL(rootUrl).origin,
      logins: policies.flatMap((policy) => loginOf(policy, service, isDevelopment)),
      version: projectVersion,
      languages: consoleLanguages
    }
    return ok(body, noStore)
  }),
  doc: { summary: "What the console's login page offers", responses: { 200: null } }
})

const loginOf = (
  { links, name: policy, pages }: Policy,
  service: string,
  isDevelopment: boolean
): ReadonlyArray<Login> => {
  if (pages?.at === "openid")
    return [{ policy, kind: "openid", url: `${service}/openid/${policy}/login` }]
  if (pages?.at === "portier") return [{ policy, kind: "portier", url: `${service}/portier/login` }]
  if (links !== undefined) return [{ policy, kind: "signed" }]
  const kind = kindOf(policy)
  const isOffered = kind === "proxy" || (kind === "basicauth" && isDevelopment)
  return isOffered ? [{ policy, kind }] : []
}

/** Characters of a token with the most groups that a user may have. */
const tokenCharsMax = 12_288

const SessionBody = Schema.Struct({
  data: Schema.Struct({
    token: Schema.String.pipe(
      Schema.check(Schema.isNonEmpty({ message: "Required" })),
      Schema.check(Schema.isMaxLength(tokenCharsMax))
    )
  })
})

const readSession = readBody(SessionBody)

export const sessionPost = operation({
  access: "anyone",
  takesJson: "always",
  read: ({ request }, errors) =>
    Effect.map(readSession(request, errors), ({ value }) => value?.data.token ?? ""),
  run: Effect.fnUntraced(function* (token: string, { request, rootUrl }) {
    const { openSession } = yield* Identity
    const location = `${rootUrl}/console/session`
    return yield* openSession(token, request.address).pipe(
      Effect.tap(({ id }) => Effect.logInfo("login at the console", { uid: id })),
      Effect.map(({ id, token: session, until }) => {
        const data = { token: session, user: id, expires_at: until }
        return ok({ data }, { Location: location, ...noStore }, 201)
      }),
      Effect.catchTags({
        LinkRefused: (error) => Effect.succeed(refusedLink(error)),
        TooManyFailures: ({ waitMillis }) =>
          Effect.succeed(errorResponse("too-many-wrong-credentials", retryAfter(waitMillis)))
      })
    )
  }),
  doc: {
    summary: "Exchange the token of a link for a session",
    body: SessionBody,
    bodyRequired: true,
    responses: { 201: null }
  }
})

const refusedLink = ({ description, why }: LinkRefused): ApiResponse => {
  const codes = { invalid: "invalid-login", expired: "expired-link", used: "used-link" } as const
  return errorResponse(codes[why], { message: description })
}

const noSession = errorIn("header", "Authorization", "Must be the Bearer token of a session")

/** Other credentials end elsewhere: at their provider, or by themselves. */
export const sessionDelete = operation({
  access: "caller",
  run: Effect.fnUntraced(function* (_, { request }) {
    const { closeSession } = yield* Identity
    if (!(yield* closeSession(request))) return yield* refuseInvalid([noSession])
    return ok(undefined, noStore, 204)
  }),
  doc: { summary: "End a session", responses: { 204: null } }
})
