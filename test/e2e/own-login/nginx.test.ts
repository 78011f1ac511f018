// The blocks for nginx of all documents, in a real nginx: what reaches the service, and what stays
// with the site.
import { once } from "node:events"
import { globSync, readFileSync } from "node:fs"
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { fileURLToPath } from "node:url"
import { SignJWT } from "jose"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, until } from "#test/client.ts"
import { blocksOf } from "#test/identity/document.ts"
import { isNginxMissing, startNginx } from "#test/nginx.ts"
import { blockOf, type Owner, secret, startOwner } from "./owner.ts"

if (isNginxMissing)
  process.stderr.write("skipped: the blocks for nginx (it is not installed here)\n")

/** A server that keeps the headers of each request. */
const startListener = async (respond: (response: ServerResponse) => void) => {
  const seen: Array<IncomingHttpHeaders> = []
  const server = createServer(({ headers }, response) => {
    seen.push(headers)
    respond(response)
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  return {
    seen,
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  }
}

const root = fileURLToPath(new URL("../../../", import.meta.url))
const documents = globSync("{README.md,.github/*.md,src/**/*.md,streams/*.md}", { cwd: root })
/** All blocks by the name of their document. */
const blocks = documents.flatMap((path) =>
  blocksOf(readFileSync(root + path, "utf8"), "nginx").map((block) => [path, block] as const)
)
const addresses = /\b(?:127\.0\.0\.1|10\.0\.0\.8):9999\b/g

/** The first response; nginx may not listen yet. */
const first = async (ask: () => ReturnType<typeof call>) =>
  (await until(
    () => ask().catch(() => undefined),
    (answer) => answer !== undefined
  ))!

describe.skipIf(isNginxMissing)("nginx by the documents", () => {
  const opened = new AsyncDisposableStack()
  let owner: Owner
  let nginx: Awaited<ReturnType<typeof startNginx>>
  beforeAll(async () => {
    owner = opened.use(await startOwner())
    const block = blockOf("2. Pass `/v1/` on", "nginx")
    nginx = opened.use(
      await startNginx(block.replace(addresses, `127.0.0.1:${owner.service.port}`))
    )
  })
  afterAll(() => opened.disposeAsync())

  it("passes /v1/ on as it came, with headers of its own", async () => {
    const forged = { "x-forwarded-proto": "https", "x-forwarded-for": "1.2.3.4" }
    const { body } = await first(() => call(nginx.url, "GET", "/v1/", undefined, undefined, forged))
    expect(body.url).toBe(`${nginx.url}/v1`)
    const token = await owner.run(blockOf("6. Publish", "sh", "token create"))
    const headers = { authorization: `Bearer ${token}` }
    const path = "/v1/users/signed%3A42/subscriptions"
    const removed = await call(nginx.url, "DELETE", path, undefined, undefined, headers)
    expect(removed.status).toBe(200)
  })

  it("passes a token of 9 KB on, as a user in many groups has", async () => {
    const groups = Array.from({ length: 320 }, (_, index) => `department-${index}-staff`)
    const token = await new SignJWT({ sub: "42", aud: "bellcast", groups })
      .setProtectedHeader({ alg: "HS256" })
      .setExpirationTime("10m")
      .sign(new TextEncoder().encode(secret))
    expect(token.length).toBeGreaterThan(9_000)
    const headers = { authorization: `Bearer ${token}` }
    const ask = () => call(nginx.url, "GET", "/v1/", undefined, undefined, headers)
    const { body, status } = await first(ask)
    expect([status, body.user?.id]).toEqual([200, "signed:42"])
  })

  it("finds the blocks of the documents", () => {
    expect(blocks.length).toBeGreaterThanOrEqual(2)
    for (const [, block] of blocks) expect(block).toMatch(addresses)
  })

  it.each(blocks)(
    "keeps the cookies of the site to itself by the block of %s",
    async (...given) => {
      const [, block] = given
      await using service = await startListener((response) => response.end())
      await using login = await startListener((response) =>
        response.writeHead(200, { "remote-user": "alice" }).end()
      )
      // What the documents of Authelia say about the place that `auth_request` asks.
      const place = `location = /internal/authelia/authz {
      internal; proxy_pass http://${login.host}; proxy_pass_request_body off; }`
      await using site = await startNginx(block.replace(addresses, service.host) + place)
      const headers = { cookie: "session=secret" }
      await first(() => call(site.url, "GET", "/v1/", undefined, undefined, headers))
      expect(service.seen.map(({ cookie }) => cookie)).toEqual([undefined])
      if (block.includes("auth_request"))
        expect(login.seen.map(({ cookie }) => cookie)).toEqual(["session=secret"])
    }
  )
})
