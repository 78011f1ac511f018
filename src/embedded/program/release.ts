// Fetches the archive of an official release of nats-server.
import { createHash } from "node:crypto"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { anyLookup } from "#basics/address-filter.ts"
import { connectorOver } from "#basics/outgoing.ts"
import { proxyOf } from "#basics/proxy.ts"
import { natsServerReleases } from "#telemetry/redaction.ts"
import { install, outputOf, type Place, type Release } from "./install.ts"

/** The release that is fetched. To take another one, copy the sums from its file SHA256SUMS. */
export const release: Release = {
  version: "2.15.0",
  url: natsServerReleases,
  sha256: {
    "darwin-amd64": "5bd8b59ca5bf93fab3da2c5843cf564cd6e2e291e22ae3b861746e7ebe259b95",
    "darwin-arm64": "e1c4e22d70bd44abfa0bcb3c16f7cf0c66f648c2e728c58924e8a1ce88913cc8",
    "linux-amd64": "5d2c51caca950333aba84911df7d377f826f3a59ec36061c6539105084f65c92",
    "linux-arm64": "cdc208f5a3f42963a52b6ab06ef65626bb870315dc936e26ba571780c6351112"
  },
  responseMillisMax: 8_000
}

/** The platform of this machine, as releases name it. */
export const platform = `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`

/** An archive has 7 MB. */
const bytesMax = 64 * 1024 ** 2
const downloadMillisMax = 300_000
/** Without a byte for so long, the download has failed. */
const silenceMillisMax = 15_000

/** undici says "fetch failed", and why in the cause: sometimes in a code alone. */
const reasonOfFetch = (error: unknown): string => {
  const { cause = error } = error as { readonly cause?: unknown }
  const { code, message } = cause as NodeJS.ErrnoException
  return message || code || String(cause)
}

/** Follows redirects, and uses the proxy that HTTPS_PROXY and NO_PROXY name. */
const download = async (url: string, place: Place): Promise<Buffer> => {
  const { responseMillisMax } = place.release
  // Not loaded where a nats-server is there already.
  const { Agent, buildConnector, fetch } = await import("undici")
  const secure = buildConnector({ timeout: responseMillisMax })
  const outgoing = { lookup: anyLookup(), millis: responseMillisMax, proxy: proxyOf(process.env) }
  const agent = new Agent({
    bodyTimeout: silenceMillisMax,
    maxResponseSize: bytesMax,
    connect: connectorOver(secure, outgoing) as typeof secure
  })
  const unanswered = new AbortController()
  const timer = setTimeout(
    () => unanswered.abort(new Error(`no response within ${responseMillisMax / 1000} s`)),
    responseMillisMax
  )
  const ends = [place.signal, unanswered.signal, AbortSignal.timeout(downloadMillisMax)]
  try {
    const response = await fetch(url, { dispatcher: agent, signal: AbortSignal.any(ends) })
    clearTimeout(timer)
    if (!response.ok) throw new Error(`the response was ${response.status}`)
    return Buffer.from(await response.arrayBuffer())
  } catch (error) {
    throw new Error(reasonOfFetch(error))
  } finally {
    clearTimeout(timer)
    await agent.destroy()
  }
}

/** The path of a nats-server from the official release. Rejects with the reason. */
export const fromRelease = async (place: Place): Promise<string> => {
  const { sha256, url, version } = place.release
  const expected = sha256[platform]
  if (expected === undefined) throw new Error(`no archive for ${platform} is known`)
  const name = `nats-server-v${version}-${platform}`
  place.say(`fetching ${name} ...`)
  const bytes = await download(`${url}/download/v${version}/${name}.tar.gz`, place)
  const actual = createHash("sha256").update(bytes).digest("hex")
  if (actual !== expected)
    throw new Error(`${name}.tar.gz has the SHA-256 ${actual} instead of ${expected}`)
  return install(place, async (folder) => {
    const archive = join(folder, `${name}.tar.gz`)
    await writeFile(archive, bytes)
    await outputOf("tar", ["-xzf", archive, "-C", folder, "--no-same-owner"], {
      ...place,
      timeoutMillis: 60_000
    })
    return join(folder, name, "nats-server")
  })
}
