// Where the API listens, and which address it calls its own.
import { once } from "node:events"
import { connect } from "node:net"
import { text } from "node:stream/consumers"
import { assert, it } from "vitest"
import { temporaryFolder } from "#test/folder.ts"
import { startService } from "#test/service.ts"

it("takes a free port for BELLCAST_PORT=0, and names it in log, banner and links", async () => {
  const dataDir = await temporaryFolder()
  await using service = await startService({
    env: { BELLCAST_PORT: "0", BELLCAST_DATA_DIR: dataDir }
  })
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
  const dataDir = await temporaryFolder()
  const locationOf = async (trusted: string, scheme: string) => {
    await using service = await startService({
      env: { BELLCAST_DATA_DIR: dataDir, BELLCAST_TRUSTED_PROXIES: trusted }
    })
    const headers = { "x-forwarded-proto": scheme }
    const response = await fetch(service.url, { headers, redirect: "manual" })
    return new URL(response.headers.get("location")!).protocol
  }
  assert.strictEqual(await locationOf("127.0.0.0/8", "https"), "https:")
  assert.strictEqual(await locationOf("10.0.0.0/8", "https"), "http:")
  assert.strictEqual(await locationOf("127.0.0.0/8", "gopher"), "http:")
})
