// The proxy fails a link the way that it says, and mends it again.
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { onTestFinished, test } from "vitest"
import { TcpProxy } from "./tcp-proxy.ts"

/** A proxy before a server that sends everything back, and clients of it. */
const echo = async () => {
  const received: Array<string> = []
  const server = createServer((socket) => {
    socket.on("error", () => {})
    socket.on("data", (data) => {
      received.push(data.toString())
      socket.write(data)
    })
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  const proxy = await TcpProxy.start((server.address() as AddressInfo).port)
  onTestFinished(async () => {
    await proxy[Symbol.asyncDispose]()
    server.close()
  })
  const client = async () => {
    const socket = connect(proxy.port, "127.0.0.1")
    await once(socket, "connect")
    onTestFinished(() => void socket.destroy())
    return socket
  }
  return { proxy, received, client }
}

/** The data that arrives next; undefined: none in this time. */
const next = async (socket: Socket, withinMillis = 2_000): Promise<string | undefined> => {
  const data = once(socket, "data").then(([chunk]) => String(chunk))
  return Promise.race([data, sleep(withinMillis, undefined)])
}

test("a cut link resets connections, and new ones, until it heals", async ({ expect }) => {
  const { proxy, client } = await echo()
  const before = await client()
  before.write("one")
  expect(await next(before)).toBe("one")
  const reset = once(before, "error")
  proxy.cut()
  expect(((await reset)[0] as NodeJS.ErrnoException).code).toBe("ECONNRESET")
  const during = connect(proxy.port, "127.0.0.1")
  expect(((await once(during, "error"))[0] as NodeJS.ErrnoException).code).toBe("ECONNRESET")
  proxy.heal()
  const after = await client()
  after.write("two")
  expect(await next(after)).toBe("two")
  expect(proxy.connections).toBe(1)
})

test("frozen bytes arrive when the link heals, in order", async ({ expect }) => {
  const { proxy, received, client } = await echo()
  const socket = await client()
  proxy.freeze()
  socket.write("one")
  expect(await next(socket, 200)).toBeUndefined()
  expect(received).toEqual([])
  proxy.heal()
  expect(await next(socket)).toBe("one")
})

test("what was sent before the client went away arrives when the link heals", async ({
  expect
}) => {
  const { proxy, received, client } = await echo()
  const socket = await client()
  socket.write("one")
  expect(await next(socket)).toBe("one")
  proxy.freeze("to server")
  await new Promise<void>((resolve) => socket.write("late", () => resolve()))
  socket.destroy()
  await sleep(200)
  expect(received).toEqual(["one"])
  proxy.heal()
  await expect.poll(() => received).toEqual(["one", "late"])
  await expect.poll(() => proxy.connections).toBe(0)
})

test("one direction freezes alone", async ({ expect }) => {
  const { proxy, received, client } = await echo()
  const socket = await client()
  proxy.freeze("to client")
  socket.write("one")
  expect(await next(socket, 200)).toBeUndefined()
  expect(received).toEqual(["one"])
  const healed = next(socket)
  proxy.heal()
  expect(await healed).toBe("one")
})

test("a slow link delays both directions", async ({ expect }) => {
  const { proxy, client } = await echo()
  const socket = await client()
  proxy.delay(100)
  const start = performance.now()
  socket.write("one")
  expect(await next(socket)).toBe("one")
  expect(performance.now() - start).toBeGreaterThan(190)
})
