// The policy proxy behind a real oauth2-proxy, in front of a certified issuer.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { follow, get, keep } from "#test/identity/cookies.ts"
import type { OidcProvider } from "#test/identity/oidc-provider.ts"
import type { Service } from "#test/service.ts"
import { missingProxy, startBehindProxy } from "./oauth2-proxy.ts"

if (missingProxy !== undefined) process.stderr.write(`skipped: ${missingProxy}\n`)

const opened = new AsyncDisposableStack()
let issuer: OidcProvider
let service: Service
let url: string

/** The cookies of a browser that has logged in. */
const loggedIn = async () => {
  const cookies = new Map<string, string>()
  const toIssuer = await follow(`${url}/oauth2/start?rd=/v1/`, url, cookies)
  const back = await follow(toIssuer.href, issuer.issuer, cookies)
  keep(await get(back.href, cookies), cookies)
  return `_oauth2_proxy=${cookies.get("_oauth2_proxy")}`
}

const send = (headers: Readonly<Record<string, string>>, path: string, method = "GET") =>
  fetch(`${url}/v1${path}`, { method, headers, redirect: "manual" })

describe.skipIf(missingProxy !== undefined)("behind oauth2-proxy", () => {
  let cookie: string
  beforeAll(async () => {
    ;({ issuer, service, url } = await startBehindProxy(opened))
    cookie = await loggedIn()
  })
  afterAll(() => opened.disposeAsync())

  it("a user who logged in has the id and the groups of the issuer", async () => {
    const root = await send({ cookie }, "/")
    expect(await root.json()).toMatchObject({
      user: {
        id: "proxy:alice",
        principals: expect.arrayContaining(["group:proxy:editor", "group:proxy:staff"])
      }
    })
  })

  it("registers, and publishes by a group", async () => {
    expect((await send({ cookie }, "/subscriptions")).status).toBe(200)
    expect((await send({ cookie }, "/channels/news/registration", "PUT")).status).toBe(202)
    const published = await send({ cookie }, "/channels/news", "POST")
    expect(published.status).toBe(202)
    expect(published.headers.get("location")?.startsWith(`${url}/v1/channels/news/`)).toBe(true)
  })

  it("nobody is another user by a header of his own", async () => {
    const headers = { "x-forwarded-user": "root", "x-forwarded-groups": "admin" }
    expect(await (await send({ ...headers, cookie }, "/")).json()).toMatchObject({
      user: { id: "proxy:alice" }
    })
    expect((await send(headers, "/subscriptions")).status).toBe(401)
    const direct = await fetch(`${service.url}/subscriptions`, { headers })
    expect(direct.status).toBe(401)
  })

  it("no page of another site uses the cookie, and no script is sent to a login", async () => {
    const headers = { cookie, "sec-fetch-site": "cross-site", origin: "https://evil.example" }
    expect((await send(headers, "/channels/news/registration", "PUT")).status).toBe(400)
    expect((await send({}, "/subscriptions")).status).toBe(401)
  })
})
