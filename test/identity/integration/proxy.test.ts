// Users whom a proxy names in headers: from the proxy, and from everybody else.
import { once } from "node:events"
import { get } from "node:http"
import { describe, expect, it } from "vitest"
import { useGateway } from "#test/identity/gateway.ts"
import { userIn } from "#test/identity/requests.ts"

const secret = "a secret of the proxy, of thirty-two bytes: ŵ"
/** Node takes headers as Latin-1, and sends each character as a byte. */
const bytes = (text: string) => Buffer.from(text, "utf8").toString("latin1")
const sent = bytes(secret)

const started = useGateway({
  // The tests play the proxy from 127.0.0.1, and somebody else from 127.0.0.2.
  BELLCAST_TRUSTED_PROXIES: "127.0.0.1",
  BELLCAST_HOST: "0.0.0.0",
  BELLCAST_AUTH_POLICIES: "proxy",
  BELLCAST_AUTH_PROXY_USER_HEADER: "Remote-User",
  BELLCAST_AUTH_PROXY_GROUPS_HEADER: "Remote-Groups",
  BELLCAST_AUTH_PROXY_SECRET: secret
})

const send = (headers: Readonly<Record<string, string>>, path = "/", init: RequestInit = {}) =>
  fetch(`${started.service.url}${path}`, { ...init, headers })
const userOf = async (headers: Readonly<Record<string, string>>) => userIn(await send(headers))

describe("a user whom the proxy names", () => {
  it("is believed with the secret, and has the groups between commas", async () => {
    const headers = { "remote-user": "anna", "x-proxy-secret": sent }
    expect(await userOf({ ...headers, "remote-groups": "editor, staff|x,ops" })).toEqual({
      id: "proxy:anna",
      principals: [
        "proxy:anna",
        "system.Everyone",
        "system.Authenticated",
        "group:proxy:editor",
        "group:proxy:staff|x",
        "group:proxy:ops"
      ]
    })
  })

  it("has no group that a client sent beside those of the proxy", async () => {
    const groups = ["Remote-Groups", "editor", "remote-groups", "staff"]
    const users = ["Remote-User", "anna", "remote-user", "anna"]
    for (const repeated of [
      [...groups, "Remote-User", "anna"],
      [...users, "Remote-Groups", "staff"]
    ]) {
      const headers = ["Host", "127.0.0.1", "X-Proxy-Secret", sent, ...repeated]
      const [response] = await once(
        get(`${started.service.url}/subscriptions`, { headers }),
        "response"
      )
      expect(response.resume().statusCode).toBe(401)
    }
    expect(started.service.output()).toMatch(/refuses headers that arrive twice/)
  })

  it("may have a name in UTF-8, but none with control characters", async () => {
    const idOf = async (name: string, groups = bytes("Łódź")) =>
      (await userOf({ "remote-user": name, "remote-groups": groups, "x-proxy-secret": sent }))
        ?.principals
    expect(await idOf(bytes("Àgnès Đặng"))).toMatchObject({ 0: "proxy:Àgnès Đặng" })
    expect(await idOf(bytes("Àgnès"))).toContain("group:proxy:Łódź")
    // A proxy that sends Latin-1 would have two users of one id: this one, and AndrÃ©.
    expect(await idOf("Andr\u00e9")).toBeUndefined()
    expect(await idOf("anna", "Andr\u00e9")).toBeUndefined()
    expect(started.service.output()).toMatch(/refuses names that are not UTF-8/)
    for (const control of ["Andr\u0085", bytes("Andr\u0085")])
      expect(await idOf(control)).toBeUndefined()
  })

  it("is nobody by a name that can be no id, and the log says why", async () => {
    for (const name of ["x".repeat(201), bytes("an\u200bna"), `@${"0".repeat(64)}`]) {
      const response = await send({ "remote-user": name, "x-proxy-secret": sent }, "/subscriptions")
      expect(response.status, name).toBe(401)
    }
    expect(started.service.output()).toMatch(
      /"level":40.*"fault":"must have [^"]+".*the policy proxy refuses names that can be no ids/
    )
  })

  it("is nobody without the secret, or with another one", async () => {
    for (const wrong of [{}, { "x-proxy-secret": "x" }, { "x-proxy-secret": `${sent}x` }]) {
      const response = await send({ "remote-user": "anna", ...wrong }, "/subscriptions")
      expect(response.status).toBe(401)
    }
    expect(started.service.output()).toMatch(/refuses headers that did not come from the proxy/)
    const metrics = await (await send({}, "/__metrics__")).text()
    expect(metrics).toMatch(/bellcast_authentications_total\{.*result="invalid".*\} ([3-9]|\d\d)/)
  })

  it("is nobody from another address, even with the secret", async () => {
    const { default: http } = await import("node:http")
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const options = {
        localAddress: "127.0.0.2",
        headers: { "remote-user": "anna", "x-proxy-secret": sent }
      }
      http
        .get(`${started.service.url}/subscriptions`, options, (response) => {
          response.resume()
          resolve(response.statusCode)
        })
        .on("error", reject)
    })
    expect(status).toBe(401)
  })

  it("cannot be used by a page of another site", async () => {
    const headers = {
      "remote-user": "anna",
      "x-proxy-secret": sent,
      "sec-fetch-site": "cross-site"
    }
    const body = JSON.stringify({ requests: [{ method: "DELETE", path: "/subscriptions" }] })
    for (const [path, init] of [
      ["/subscriptions", { method: "POST", body }],
      ["/channels/news", { method: "POST" }],
      ["/batch", { method: "POST", body }]
    ] as const) {
      const refused = await send({ ...headers, "content-type": "text/plain" }, path, init)
      expect([400, 403, 415]).toContain(refused.status)
    }
    // A browser asks before other methods, and may send no credentials of its own.
    const asked = { ...headers, origin: "https://x.example" }
    const preflight = { ...asked, "access-control-request-method": "DELETE" }
    const allowed = await send(preflight, "/subscriptions", { method: "OPTIONS" })
    expect(allowed.headers.get("access-control-allow-origin")).toBe("*")
    expect(allowed.headers.get("access-control-allow-credentials")).toBeNull()
  })

  it("is also the user of a batch's entries, whatever their headers say", async () => {
    const response = await send(
      { "remote-user": "anna", "x-proxy-secret": sent, "content-type": "application/json" },
      "/batch",
      {
        method: "POST",
        body: JSON.stringify({ requests: [{ path: "/", headers: { "Remote-User": "root" } }] })
      }
    )
    expect(await response.json()).toMatchObject({
      responses: [{ body: { user: { id: "proxy:anna" } } }]
    })
  })
})
