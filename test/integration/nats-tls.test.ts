// tls:// in BELLCAST_NATS_URL: no login goes to a server without TLS or with a wrong certificate.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect } from "@nats-io/transport-node"
import { Effect } from "effect"
import { afterAll, assert, describe, it } from "vitest"
import { Nats } from "#nats/connection/connection.ts"
import { tlsOptions } from "#nats/connection/tls.ts"
import type { NatsTlsFiles } from "#settings/addresses.ts"
import { makeAuthority } from "../support/certificates.ts"
import { call, until } from "../support/client.ts"
import { startConfiguredNats, startNatsRecorder } from "../support/nats-configured.ts"
import { claimPort } from "../support/ports.ts"
import { startService } from "../support/service.ts"
import { spawnCli } from "../support/spawn-cli.ts"

const folder = mkdtempSync(join(tmpdir(), "bellcast-tls-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const { ca, sign } = makeAuthority(folder, "ours")
const other = makeAuthority(folder, "other")
const localhost = sign("DNS:localhost")
const address = sign("IP:127.0.0.1")
const client = sign("DNS:client.example")

const jetstream = "jetstream { }\nauthorization { user: bell, password: hush }"
const tlsOf = ({ cert, key }: typeof localhost, verify = false) =>
  `tls { cert_file: "${cert}", key_file: "${key}", ca_file: "${ca}", verify: ${verify} }`
const urlOf = (port: number, host = "localhost") => `tls://bell:hush@${host}:${port}`

/** "connected", or why not. */
const tried = (url: string, tls: NatsTlsFiles = {}): Promise<string> =>
  Effect.gen(function* () {
    yield* Nats
    return "connected"
  }).pipe(
    Effect.provide(Nats.layer({ url, tls, name: "test" })),
    Effect.catch(({ cause }) => Effect.succeed(String((cause as Error).message))),
    Effect.runPromise
  )

describe("a server without TLS", () => {
  it("is refused before it sees the login, by the service and by the command line", async () => {
    await using recorder = await startNatsRecorder()
    assert.match(await tried(urlOf(recorder.port)), /^the server offers no TLS, which tls:\/\/ dem/)
    await using cli = await spawnCli(["dead", "--nats", urlOf(recorder.port)])
    assert.equal(await cli.exit(), 1)
    assert.match(cli.output.stderr, /the server offers no TLS/)
    assert.deepEqual(recorder.seen, { connections: 2, said: "" })
    assert.notInclude(cli.output.stderr, "hush")
  })

  it.for([1, "true"])("is refused when it claims to have TLS by %j", async (claim) => {
    await using recorder = await startNatsRecorder(undefined, { tls_available: claim })
    assert.match(await tried(urlOf(recorder.port)), /^the server offers no TLS, which tls:\/\/ dem/)
    assert.deepEqual(recorder.seen, { connections: 1, said: "" })
  })

  it("is not visited when a server with TLS announces it", async () => {
    await using recorder = await startNatsRecorder()
    const [port, routes] = [await claimPort(), await claimPort()]
    const login = "authorization { user: bell, password: hush }"
    const member = (more: string) => `cluster { name: c, ${more} }\n${login}\n${tlsOf(localhost)}`
    const first = await startConfiguredNats(port, member(`listen: "127.0.0.1:${routes}"`))
    const second = await startConfiguredNats(
      await claimPort(),
      `${member(`listen: "127.0.0.1:${await claimPort()}", routes: ["nats://127.0.0.1:${routes}"]`)}
      client_advertise: "127.0.0.1:${recorder.port}"`
    )
    const nc = await connect({
      servers: `tls://localhost:${port}`,
      user: "bell",
      pass: "hush",
      ...(await tlsOptions(urlOf(port), { ca })),
      maxReconnectAttempts: -1,
      reconnectTimeWait: 50,
      reconnectJitterTLS: 1
    })
    await until(
      async () => nc.info?.connect_urls ?? [],
      (urls) => urls.includes(`127.0.0.1:${recorder.port}`)
    )
    const statuses = nc.status()[Symbol.asyncIterator]()
    for (const nats of [first, second]) await nats[Symbol.asyncDispose]()
    for (let reconnects = 0; reconnects < 5; ) {
      const { value } = await statuses.next()
      if (value?.type === "reconnecting") reconnects++
    }
    assert.deepEqual(recorder.seen, { connections: 0, said: "" })
    await nc.close()
  })
})

describe("a server with TLS", () => {
  it("serves the service and the command line, and no other takes its place when it is gone", {
    timeout: 60_000
  }, async () => {
    const port = await claimPort()
    const config = `${jetstream}\n${tlsOf(localhost)}`
    const env = { BELLCAST_NATS_URL: urlOf(port), BELLCAST_NATS_TLS_CA: ca }
    await using service = await (async () => {
      await using _nats = await startConfiguredNats(port, config)
      const service = await startService({ natsUrl: urlOf(port), env })
      assert.equal((await call(service.url, "GET", "/__heartbeat__")).status, 200)
      await using cli = await spawnCli(["streams", "--live"], env)
      assert.equal(await cli.exit(), 0)
      assert.match(cli.output.stdout, /^BELLCAST_LOG /m)
      return service
    })()
    {
      await using recorder = await startNatsRecorder(port)
      await recorder.visited(2)
      assert.equal(recorder.seen.said, "")
    }
    await using _again = await startConfiguredNats(port, config)
    await until(
      async () => service.output(),
      (output) => output.includes("the connection to NATS is back")
    )
    assert.notInclude(service.output(), "hush")
  })

  it("is refused when its certificate has an unknown authority or another name", async () => {
    const [port, byAddress] = [await claimPort(), await claimPort()]
    await using _nats = await startConfiguredNats(port, `${jetstream}\n${tlsOf(localhost)}`)
    await using _second = await startConfiguredNats(byAddress, `${jetstream}\n${tlsOf(address)}`)
    const unknown = /^no known authority signed the server's certificate: BELLCAST_NATS_TLS_CA /
    assert.match(await tried(urlOf(port)), unknown)
    assert.match(await tried(urlOf(port), { ca: other.ca }), unknown)
    // The client upgrades a connection to a server that demands TLS, and checks it all the same.
    assert.match(await tried(urlOf(port).replace("tls:", "nats:")), unknown)
    assert.equal(await tried(urlOf(port), { ca }), "connected")
    const wrong = /^Hostname\/IP does not match certificate's altnames/
    assert.match(await tried(urlOf(byAddress), { ca }), wrong)
    assert.equal(await tried(urlOf(byAddress, "127.0.0.1"), { ca }), "connected")
    assert.match(await tried(urlOf(port, "127.0.0.1"), { ca }), wrong)
  })

  it("that demands a certificate of the client gets it", { timeout: 30_000 }, async () => {
    const port = await claimPort()
    await using _nats = await startConfiguredNats(port, `${jetstream}\n${tlsOf(localhost, true)}`)
    assert.equal(await tried(urlOf(port), { ca, ...client }), "connected")
    assert.match(await tried(urlOf(port), { ca }), /set BELLCAST_NATS_TLS_CERT$/)
    const missing = { ca, ...client, key: join(folder, "none.key") }
    assert.match(await tried(urlOf(port), missing), /^BELLCAST_NATS_TLS_KEY: .*\(ENOENT\)$/)
  })
})
