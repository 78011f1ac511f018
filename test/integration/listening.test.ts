// Where the API listens, and which address it calls its own.
import { once } from "node:events"
import { connect } from "node:net"
import { text } from "node:stream/consumers"
import { assert, it } from "vitest"
import { makeFolder, temporaryFolder } from "#test/folder.ts"
import { type Service, startService } from "#test/service.ts"
import { useShared } from "#test/use-service.ts"

const trustingLoopback = useShared(async (opened) => {
  const data = opened.use(await makeFolder())
  const env = {
    BELLCAST_PORT: "0",
    BELLCAST_DATA_DIR: data.path,
    BELLCAST_TRUSTED_PROXIES: "127.0.0.0/8"
  }
  return { service: opened.use(await startService({ env })) }
})

it("takes a free port for BELLCAST_PORT=0, and names it in log, banner and links", async () => {
  const { service } = trustingLoopback
  const [, port] = /"api":"127\.0\.0\.1:(\d+)"/.exec(service.output()) ?? []
  assert.isAbove(Number(port), 0)
  assert.match(service.output(), new RegExp(`HTTP API +http://127\\.0\\.0\\.1:${port}/v1/\n`))
  // Without Host, which HTTP/1.0 allows.
  const socket = connect(Number(port), "127.0.0.1")
  await once(socket, "connect")
  socket.end("GET /v1 HTTP/1.0\r\n\r\n")
  assert.match(
    await text(socket),
    new RegExp(`^Location: http://127\\.0\\.0\\.1:${port}/v1/`, "im")
  )
})

it("links by https where a trusted proxy says so, and where no other sender does", async () => {
  await using other = await startService({
    env: { BELLCAST_DATA_DIR: await temporaryFolder(), BELLCAST_TRUSTED_PROXIES: "10.0.0.0/8" }
  })
  const protocolOf = async ({ url }: Service, scheme: string) => {
    const headers = { "x-forwarded-proto": scheme }
    const response = await fetch(url, { headers, redirect: "manual" })
    return new URL(response.headers.get("location")!).protocol
  }
  assert.strictEqual(await protocolOf(trustingLoopback.service, "https"), "https:")
  assert.strictEqual(await protocolOf(other, "https"), "http:")
  assert.strictEqual(await protocolOf(trustingLoopback.service, "gopher"), "http:")
})
