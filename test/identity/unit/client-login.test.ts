// How requests to an authorization server log in, over a connection: a retry must not repeat what
// the server takes only once.
import { generateKeyPairSync } from "node:crypto"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { Effect, Option, Redacted } from "effect"
import { jwtVerify } from "jose"
import { expect, it, onTestFinished } from "vitest"
import { introspection } from "#identity/policies/oauth.ts"
import { makeClientLogin, makeSend } from "#identity/provider/client.ts"
import { folderWith } from "#test/folder.ts"

/** A server that is overloaded at each first request, and what it got. */
const startServer = async () => {
  const bodies: Array<URLSearchParams> = []
  const server = createServer(async (request, response) => {
    bodies.push(new URLSearchParams(await text(request)))
    response.writeHead(bodies.length % 2 === 1 ? 503 : 200).end("{}")
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  onTestFinished(() => void server.close())
  return { bodies, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/introspect` }
}

it("signs another assertion for a retry, which the server has not seen", async () => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const folder = await folderWith({
    "key.pem": privateKey.export({ type: "pkcs8", format: "pem" }).toString()
  })
  const { bodies, url } = await startServer()
  const response = await Effect.gen(function* () {
    const login = yield* makeClientLogin("oauth", "BELLCAST_AUTH_OAUTH", url, {
      clientId: Option.some("bellcast"),
      clientKeyFile: Option.some(join(folder, "key.pem")),
      clientSecret: Option.none()
    })
    const send = yield* makeSend("oauth", ["127.0.0.1"])
    return yield* introspection(url, send, login).ask("a token")
  }).pipe(Effect.scoped, Effect.runPromise)
  expect(response.status).toBe(200)
  const verified = await Promise.all(
    bodies.map((body) =>
      jwtVerify(body.get("client_assertion")!, publicKey, {
        algorithms: ["ES256"],
        audience: url,
        issuer: "bellcast",
        subject: "bellcast"
      })
    )
  )
  const ids = verified.map(({ payload }) => payload.jti)
  expect([ids.length, new Set(ids).size]).toEqual([2, 2])
})

it("encodes id and secret before it joins them", async () => {
  const login = await Effect.runPromise(
    makeClientLogin("oauth", "BELLCAST_AUTH_OAUTH", "", {
      clientId: Option.some("bell cast"),
      clientKeyFile: Option.none(),
      clientSecret: Option.some(Redacted.make("p:ss+%"))
    })
  )
  const pair = Buffer.from("bell+cast:p%3Ass%2B%25").toString("base64")
  expect(login.headers).toEqual({ authorization: `Basic ${pair}` })
})
