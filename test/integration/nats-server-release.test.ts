// nats-server is fetched as the archive of an official release: from a server with TLS that sends
// the same kind of archive as the release server, by a process with an environment of its own.
import { execFile, execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { once } from "node:events"
import { copyFile, mkdir, mkdtemp, readdir, rm } from "node:fs/promises"
import { createServer } from "node:https"
import type { AddressInfo, Server } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect } from "effect"
import { assert, beforeAll, describe, it, onTestFinished } from "vitest"
import { locateNatsServer, platform } from "#embedded/program/locate.ts"
import { startConnectProxy } from "../support/connect-proxy.ts"
import { temporaryFolder } from "../support/folder.ts"
import { testCertificate, trustingEnvironment } from "../support/tls.ts"

const version = "2.15.0"
const name = `nats-server-v${version}-${platform}`
let archive: Buffer
let sha256: string

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), "bellcast-"))
  await mkdir(join(folder, name))
  await copyFile(await Effect.runPromise(locateNatsServer), join(folder, name, "nats-server"))
  archive = execFileSync("tar", ["-czf", "-", name], { cwd: folder, maxBuffer: 2 ** 27 })
  sha256 = createHash("sha256").update(archive).digest("hex")
  await rm(folder, { recursive: true })
})

const listening = async (server: Server): Promise<number> => {
  await once(server.listen(0, "127.0.0.1"), "listening")
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** Redirects to the archive, as the release server does. `/silent/` never answers. */
const releaseServer = async (): Promise<string> => {
  const server = createServer(testCertificate(), ({ url }, response) => {
    if (url === `/releases/download/v${version}/${name}.tar.gz`)
      response.writeHead(302, { location: "/files/1" }).end()
    else if (url === "/files/1") response.end(archive)
    else if (url?.startsWith("/silent/") !== true) response.writeHead(404).end()
  })
  const port = await listening(server)
  onTestFinished(() => server.closeAllConnections())
  return `https://localhost:${port}`
}

const script = `
  import { fromRelease } from "#embedded/program/locate.ts"
  const signal = AbortSignal.timeout(30_000)
  const place = { ...JSON.parse(process.argv[1]), say: () => undefined, signal }
  console.log(await fromRelease(place).catch(({ message }) => message))
`
const root = fileURLToPath(new URL("../..", import.meta.url))

/** What a process with this environment makes of a release: a path or the reason. */
const fetched = async (
  url: string,
  {
    env = {},
    sums = { [platform]: sha256 }
  }: { readonly env?: object; readonly sums?: object } = {}
) => {
  const toolsDir = await temporaryFolder()
  const release = { url, version, sha256: sums, responseMillisMax: 2_000 }
  const place = JSON.stringify({ path: process.env["PATH"], toolsDir, release })
  const args = ["--input-type=module", "--eval", script, place]
  const environment = { PATH: process.env["PATH"], ...trustingEnvironment, ...env }
  const options = { cwd: root, env: environment }
  const { stdout } = await promisify(execFile)(process.execPath, args, options)
  return { said: stdout.trim(), toolsDir, files: await readdir(toolsDir) }
}

describe("the official release of nats-server", () => {
  it("is fetched through a redirect, unpacked, and put into place", async () => {
    const { files, said, toolsDir } = await fetched(`${await releaseServer()}/releases`)
    assert.strictEqual(said, join(toolsDir, "nats-server"))
    assert.deepStrictEqual(files, ["nats-server"])
    assert.match(execFileSync(said, ["--version"], { encoding: "utf8" }), /^nats-server: v/)
  })

  it("is rejected where its SHA-256 is another one, and leaves nothing behind", async () => {
    const url = `${await releaseServer()}/releases`
    const other = "0".repeat(64)
    const { files, said } = await fetched(url, { sums: { [platform]: other } })
    assert.strictEqual(said, `${name}.tar.gz has the SHA-256 ${sha256} instead of ${other}`)
    assert.deepStrictEqual(files, [])
  })

  it("comes through the proxy of the environment, but not where NO_PROXY excludes it", async () => {
    const url = `${await releaseServer()}/releases`
    await using proxy = await startConnectProxy()
    const { asked, url: proxyUrl } = proxy
    const through = await fetched(url, { env: { HTTPS_PROXY: proxyUrl } })
    assert.deepStrictEqual(through.files, ["nats-server"], through.said)
    assert.deepStrictEqual([...new Set(asked)], [new URL(url).host])
    const before = asked.length
    const past = await fetched(url, { env: { HTTPS_PROXY: proxyUrl, NO_PROXY: "localhost" } })
    assert.deepStrictEqual(past.files, ["nats-server"], past.said)
    assert.lengthOf(asked, before)
  })

  it("is given up in seconds, with the reason, where it cannot be had", async () => {
    const base = await releaseServer()
    const reason = async (...args: Parameters<typeof fetched>) => (await fetched(...args)).said
    assert.strictEqual(await reason(`${base}/silent`), "no response within 2 s")
    assert.strictEqual(await reason(`${base}/elsewhere`), "the response was 404")
    assert.match(await reason("https://127.0.0.1:2"), /^connect ECONNREFUSED 127\.0\.0\.1:2$/)
    assert.match(
      await reason(base, { env: { NODE_EXTRA_CA_CERTS: "" } }),
      /^(self-signed certificate|unable to verify)/
    )
    assert.strictEqual(await reason(base, { sums: {} }), `no archive for ${platform} is known`)
  })
})
