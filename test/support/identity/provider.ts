// An identity provider that misbehaves on demand: introspection, the verify call, a discovery
// document and keys. It counts what it is asked.
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from "jose"

export type Mood =
  | "well"
  | "slow"
  | "silent"
  | "down"
  | "garbage"
  | "redirecting"
  | "huge"
  | "401"
  | "429"
  | "500"

export interface IdentityProvider extends AsyncDisposable {
  readonly url: string
  /** What the next requests meet. */
  mood: Mood
  /** Responses to introspection and to the verify call, by token. */
  readonly tokens: Map<string, Readonly<Record<string, unknown>>>
  /** The response of the userinfo endpoint, whatever the token; undefined: there is none. */
  userinfo: Readonly<Record<string, unknown>> | undefined
  /** Paths of all requests, and the Authorization of each. */
  readonly requests: Array<{ readonly path: string; readonly authorization: string | undefined }>
  readonly count: (path: string) => number
  /**
   * A token of this issuer, valid for a minute unless `claims` say otherwise; by the latest key, or
   * by an earlier one whose `kid` the header names.
   */
  readonly token: (
    claims?: Readonly<Record<string, unknown>>,
    header?: Readonly<Record<string, unknown>>
  ) => Promise<string>
  /** Makes a new signing key. The former ones are not published any more, unless they are kept. */
  readonly rotate: (
    alg: "RS256" | "ES256" | "EdDSA",
    kid: string,
    options?: { readonly keeps: boolean }
  ) => Promise<void>
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString("utf8")
}

/** Ends a request badly. False: the mood is well. */
const misbehave = async (mood: Mood, response: ServerResponse): Promise<boolean> => {
  if (/^\d/.test(mood)) response.writeHead(Number(mood)).end('{"error":"no"}')
  else if (mood === "down") response.destroy()
  else if (mood === "garbage") response.end("<html>")
  else if (mood === "redirecting") response.writeHead(302, { location: "/v1/verify" }).end("{}")
  else if (mood === "huge") response.end(`{"active":true,"sub":"${"x".repeat(300_000)}"}`)
  else if (mood === "slow") {
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    return false
  } else return mood === "silent"
  return true
}

/** Starts a provider. `discovery`: more members of its discovery document. */
export const startIdentityProvider = async (
  discovery: Readonly<Record<string, unknown>> = {}
): Promise<IdentityProvider> => {
  const signing: Array<{ readonly key: CryptoKey; readonly alg: string; readonly kid: string }> = []
  let jwks: { readonly keys: ReadonlyArray<unknown> } = { keys: [] }
  const rotate: IdentityProvider["rotate"] = async (alg, kid, { keeps } = { keeps: false }) => {
    const { privateKey, publicKey } = await generateKeyPair(alg)
    signing.unshift({ key: privateKey, alg, kid })
    const added = { ...(await exportJWK(publicKey)), alg, kid, use: "sig" }
    jwks = { keys: keeps ? [...jwks.keys, added] : [added] }
  }
  await rotate("RS256", "first")

  const tokens = new Map<string, Readonly<Record<string, unknown>>>()
  const documentOf = (path: string, body: string): readonly [number, unknown] => {
    switch (path) {
      case "/.well-known/openid-configuration":
        return [
          200,
          {
            issuer: url,
            jwks_uri: `${url}/jwks`,
            userinfo_endpoint: `${url}/userinfo`,
            authorization_endpoint: `${url}/auth`,
            ...discovery
          }
        ]
      case "/jwks":
        return [200, jwks]
      case "/introspect":
        return [200, tokens.get(new URLSearchParams(body).get("token") ?? "") ?? { active: false }]
      case "/v1/verify": {
        const found = tokens.get((JSON.parse(body) as { token: string }).token)
        return found === undefined ? [400, { errno: 108 }] : [200, found]
      }
      case "/userinfo":
        return [provider.userinfo === undefined ? 404 : 200, provider.userinfo ?? {}]
      case "/__heartbeat__":
        return [200, {}]
      default:
        return [404, {}]
    }
  }

  const server = createServer(async (request, response) => {
    const path = request.url ?? ""
    provider.requests.push({ path, authorization: request.headers.authorization })
    const body = await bodyOf(request)
    if (await misbehave(provider.mood, response)) return
    const [status, document] = documentOf(path, body)
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(document))
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const provider: IdentityProvider = {
    url,
    mood: "well",
    tokens,
    userinfo: undefined,
    requests: [],
    count: (path) => provider.requests.filter((each) => each.path === path).length,
    token: (claims = {}, header = {}) => {
      const now = Math.floor(Date.now() / 1000)
      const all = { iss: url, aud: "bellcast", sub: "alice", exp: now + 60, ...claims }
      const { alg, key, kid } = signing.find((each) => each.kid === header["kid"]) ?? signing[0]!
      return new SignJWT(all).setProtectedHeader({ alg, kid, typ: "at+jwt", ...header }).sign(key)
    },
    rotate,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, "close")
    }
  }
  return provider
}
