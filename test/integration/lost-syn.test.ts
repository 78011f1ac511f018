// Connections to hosts whose addresses do not all respond, or respond late: to push services and to
// identity providers. Two addresses drop every SYN; the first one responds after half a second.
import dns from "node:dns"
import { once } from "node:events"
import { syncBuiltinESMExports } from "node:module"
import { type AddressInfo, createServer } from "node:net"
import { ConfigProvider, Effect, Layer } from "effect"
import { assert, describe, it } from "vitest"
import type { Resolve } from "#basics/address-filter.ts"
import { anyLookup } from "#basics/address-filter.ts"
import { interleaved, openSocket } from "#basics/outgoing.ts"
import { Settings } from "#config"
import { PushClient } from "#delivery/push/post.ts"
import { Origins } from "#delivery/push-service/origins.ts"
import { makeSend } from "#identity/provider/client.ts"
import { startLossyServer } from "../support/lost-syn.ts"
import { elapsed } from "../support/quiet.ts"

const first = "127.0.0.2"
const second = "127.0.0.3"
const name = "slow.test"
/** Node.js gives up an attempt after 250 ms. */
const responds = () => elapsed(500)

const addressesOf =
  (...addresses: ReadonlyArray<string>): Resolve =>
  (_, __, callback) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: 4 }))
    )

/** Node's resolver, which for one name has these addresses. */
const resolving = (resolve: Resolve) => {
  const real = dns.lookup as (...args: ReadonlyArray<unknown>) => void
  const install = (lookup: typeof real) => {
    Object.assign(dns, { lookup })
    syncBuiltinESMExports()
  }
  install((hostname, options, callback) =>
    hostname === name
      ? resolve(name, { all: true }, callback as never)
      : real(hostname, options, callback)
  )
  return { [Symbol.dispose]: () => install(real) }
}

const startBoth = async () => {
  const stack = new AsyncDisposableStack()
  const late = stack.use(await startLossyServer(first))
  stack.use(await startLossyServer(second, late.port))
  return { late, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

describe("a host whose first address responds late and whose second one never does", () => {
  it("gets a push", { timeout: 30_000 }, async () => {
    await using both = await startBoth()
    using _ = resolving(addressesOf(first, second))
    const pushed = Effect.gen(function* () {
      const client = yield* PushClient
      const request = { path: "/push", headers: { ttl: "60" }, body: Buffer.of(1) }
      return yield* client.post({ origin: `http://${name}:${both.late.port}`, ...request })
    }).pipe(
      Effect.provide(
        PushClient.layer.pipe(
          Layer.provide(Origins.layer),
          Layer.provide(Settings.layer),
          Layer.provide(
            ConfigProvider.layer(
              ConfigProvider.fromUnknown({ BELLCAST_ALLOW_LOOPBACK_ENDPOINTS: "true" })
            )
          )
        )
      ),
      Effect.runPromise
    )
    await responds()
    both.late.resume()
    assert.deepInclude(await pushed, { status: 200 })
  })

  it("is asked as an identity provider", { timeout: 30_000 }, async () => {
    await using both = await startBoth()
    const asked = Effect.gen(function* () {
      const send = yield* makeSend("openid", [name], addressesOf(first, second))
      return yield* send({ url: `http://${name}:${both.late.port}/`, isSingle: true })
    }).pipe(Effect.scoped, Effect.runPromise)
    await responds()
    both.late.resume()
    assert.strictEqual((await asked).status, 200)
  })
})

describe("a connection", () => {
  const opened = (port: number, millis: number, ...addresses: ReadonlyArray<string>) =>
    new Promise<string>((resolve) => {
      const target = { hostname: name, port, lookup: anyLookup(addressesOf(...addresses)), millis }
      openSocket(target, (error, socket) => {
        resolve(socket?.remoteAddress ?? (error as NodeJS.ErrnoException).code ?? "")
        socket?.destroy()
      })
    })

  it("is that to the next address, where the first one never responds", async () => {
    await using silent = await startLossyServer(first)
    const server = createServer((socket) => socket.destroy()).listen(silent.port, second)
    await once(server, "listening")
    assert.equal(await opened(silent.port, 5_000, first, second), second)
    server.close()
  })

  it("is that to the next address at once, where the first one refuses", async () => {
    const server = createServer((socket) => socket.destroy()).listen(0, second)
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    assert.equal(await opened(port, 5_000, first, second), second)
    server.close()
    assert.equal(await opened(port, 5_000, first, second), "ECONNREFUSED")
  })

  it("is given up in time, where no address responds", async () => {
    await using both = await startBoth()
    assert.equal(await opened(both.late.port, 600, first, second), "UND_ERR_CONNECT_TIMEOUT")
  })

  it("alternates between the families, beginning with that of the first address", () => {
    const of = (address: string) => ({ address, family: address.includes(":") ? 6 : 4 })
    const order = (...list: ReadonlyArray<string>) =>
      interleaved(list.map(of)).map(({ address }) => address)
    assert.deepEqual(order("::1", "::2", "::3", "1.1.1.1"), ["::1", "1.1.1.1", "::2", "::3"])
    assert.deepEqual(order("1.1.1.1", "::1", "1.1.1.2"), ["1.1.1.1", "::1", "1.1.1.2"])
    assert.deepEqual(order(), [])
  })
})
