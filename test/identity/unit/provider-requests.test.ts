// To where requests to identity providers go, over connections: nowhere that the operator has not
// named, no redirect is followed, and what is busy is asked twice.
import { once } from "node:events"
import { createServer } from "node:http"
import { createSecureServer } from "node:http2"
import type { AddressInfo } from "node:net"
import { setDefaultCACertificates } from "node:tls"
import { Effect } from "effect"
import { beforeEach, describe, expect, it } from "vitest"
import type { Resolve } from "#basics/address-filter.ts"
import {
  discoveredUrlFault,
  makeSend,
  type ProviderRequest,
  providerUrlFault
} from "#identity/provider/client.ts"
import { testCertificate } from "../../support/tls.ts"

/** Every name leads to this machine, as it can once somebody else decides what a name is. */
const resolve: Resolve = (_, __, callback) => callback(null, [{ address: "127.0.0.1", family: 4 }])

let asked = 0
let statuses: Array<number> = []
const server = createServer((_, response) => {
  asked += 1
  response.writeHead(statuses.shift() ?? 200, { location: "/elsewhere" }).end("{}")
})
server.unref()

const requested = async (host: string, more: Partial<ProviderRequest> = {}) => {
  if (!server.listening) await once(server.listen(0, "127.0.0.1"), "listening")
  const { port } = server.address() as AddressInfo
  return Effect.gen(function* () {
    const send = yield* makeSend("openid", ["login.example.org", "127.0.0.1"], resolve)
    return yield* send({ url: `http://${host}:${port}/`, ...more })
  }).pipe(
    Effect.map(({ status }) => status),
    Effect.catch(({ cause }) => Effect.succeed(cause)),
    Effect.scoped,
    Effect.runPromise
  )
}
beforeEach(() => {
  asked = 0
  statuses = []
})

describe("a private address", () => {
  it("is asked where the operator named the host", async () => {
    expect([await requested("login.example.org"), await requested("127.0.0.1")]).toEqual([200, 200])
  })

  for (const host of ["keys.example.org", "127.0.0.2", "[::1]"])
    it(`is not asked as ${host}, which a document of the provider may name`, async () => {
      expect([await requested(host), asked]).toEqual(["ADDRESS_NOT_ALLOWED", 0])
    })
})

// Over HTTP/2 a provider that keeps its window shut for longer than the time-out, and then opens
// it, would make Node.js hang.
it("a provider that offers HTTP/2 is asked over HTTP/1.1", async () => {
  const certificate = testCertificate()
  setDefaultCACertificates([certificate.cert])
  const versions: Array<string> = []
  const secure = createSecureServer({ ...certificate, allowHTTP1: true }, (request, response) => {
    versions.push(request.httpVersion)
    response.end("{}")
  })
  await once(secure.listen(0, "127.0.0.1"), "listening")
  const { port } = secure.address() as AddressInfo
  const send = Effect.flatMap(makeSend("openid", ["localhost"]), (sends) =>
    sends({ url: `https://localhost:${port}/token`, form: { code: "1" } })
  )
  expect((await Effect.runPromise(Effect.scoped(send))).status).toBe(200)
  expect(versions).toEqual(["1.1"])
  secure.close()
  setDefaultCACertificates([])
})

describe("a response", () => {
  it("that redirects is not followed", async () => {
    statuses = [302]
    expect([await requested("127.0.0.1"), asked]).toEqual([302, 1])
  })

  it("of a busy server is asked for once more, unless the request counts once", async () => {
    statuses = [503, 503]
    expect([await requested("127.0.0.1"), asked]).toEqual([503, 2])
    statuses = [503]
    expect([await requested("127.0.0.1", { isSingle: true }), asked]).toEqual([503, 3])
  })
})

describe("the URL of a provider", () => {
  it("is https, or on this machine, and holds no login", () => {
    for (const url of ["https://login.example.org/a", "http://127.0.0.1:8080", "http://[::1]/"])
      expect(providerUrlFault(url)).toBeUndefined()
    for (const url of ["http://login.example.org", "http://10.0.0.7/", "login.example.org"])
      expect(providerUrlFault(url)).toMatch(/^Expected/)
    expect(providerUrlFault("https://anna:hush@login.example.org")).toMatch(/^Expected a URL/)
  })

  it("is https in its own documents, too", () => {
    const faultAt = (url: unknown) => discoveredUrlFault(url, "https://login.example.org/realm")
    expect(faultAt("https://keys.example.org/keys")).toBeUndefined()
    for (const url of ["http://keys.example.org/", "http://127.0.0.1/", "ftp://login.example.org"])
      expect(faultAt(url)).toBe("is not https")
    expect(faultAt("https://anna:hush@keys.example.org/")).toBe("is no URL")
  })
})
