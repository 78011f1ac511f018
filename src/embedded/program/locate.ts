// Finds a nats-server that is new enough, or fetches one into .tools/: the archive of the official
// release, else the Debian package. Changes nothing of the user's system.

import { createHash } from "node:crypto"
import { existsSync } from "node:fs"
import { mkdir, readdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { anyLookup } from "#basics/address-filter.ts"
import { connectorOver, proxyOf } from "#basics/outgoing.ts"
import { natsServerReleases } from "#telemetry/redaction.ts"
import {
  type CommandOptions,
  install,
  outputOf,
  type Place,
  type Release,
  usableVersion,
  versionMin
} from "./install.ts"

export class NatsServerMissing extends Schema.TaggedError<NatsServerMissing>()(
  "NatsServerMissing",
  { message: Schema.String }
) {}

/** Where the environment has no PATH. */
const pathDefault = "/usr/local/bin:/usr/bin:/bin"

const toolsDir = fileURLToPath(new URL("../../../.tools", import.meta.url))

/** The path of a usable nats-server, fetched if need be. */
export const locateNatsServer = Effect.gen(function* () {
  const explicit = yield* Config.option(Config.String("BELLCAST_NATS_SERVER"))
  return yield* Effect.tryPromise({
    try: (signal) => {
      const say = (line: string) => void process.stderr.write(`${line}\n`)
      return locateIn({
        explicit: Option.getOrUndefined(explicit) || undefined,
        // Config has only settings of Bellcast, whose names begin with BELLCAST_.
        path: process.env["PATH"] || pathDefault,
        toolsDir,
        release,
        say,
        signal
      })
    },
    catch: (error) => new NatsServerMissing({ message: reasonOf(error) })
  })
})

/** The path of a usable nats-server. Rejects with one message that says what was tried. */
export const locateIn = async (place: Place): Promise<string> => {
  const { explicit } = place
  // If the operator names a server, no other one is taken in its place.
  if (explicit !== undefined) {
    await usableVersion(explicit, place).catch((error) => {
      throw new Error(`BELLCAST_NATS_SERVER: ${reasonOf(error)}`)
    })
    return explicit
  }
  const tried = ["  BELLCAST_NATS_SERVER: not set"]
  for (const [name, find] of Object.entries(steps)) {
    try {
      return await find(place)
    } catch (error) {
      place.signal.throwIfAborted()
      tried.push(`  ${name}: ${reasonOf(error)}`)
    }
  }
  const none = `No nats-server ${versionMin} or newer was found, and none could be fetched.`
  throw new Error([none, ...tried, shortestWay()].join("\n"))
}

/** The first of these files that is there, if it is new enough. */
const first = async (files: ReadonlyArray<string>, place: Place): Promise<string> => {
  const file = files.find(existsSync)
  if (file === undefined) throw new Error("none there")
  await usableVersion(file, place)
  return file
}

/** Tried in this order, from the fastest to the slowest. */
const steps: Readonly<Record<string, (place: Place) => Promise<string>>> = {
  PATH: (place) =>
    first(
      place.path.split(":").map((folder) => join(folder, "nats-server")),
      place
    ),
  ".tools/nats-server": (place) => first([join(place.toolsDir, "nats-server")], place),
  "official release": (place) => fromRelease(place),
  "Debian package (sid)": (place) => fromDebian(place)
}

const shortestWay = () =>
  `Shortest way: download nats-server ${release.version} from ${natsServerReleases} and set ` +
  "BELLCAST_NATS_SERVER to its path, or set BELLCAST_NATS_URL to a server that runs already."

const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/** The release that is fetched. To take another one, copy the sums from its file SHA256SUMS. */
const release: Release = {
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

/** Two names of the same file: .gpg until Debian 12, .pgp since. */
const keyrings = [
  "/usr/share/keyrings/debian-archive-keyring.pgp",
  "/usr/share/keyrings/debian-archive-keyring.gpg"
]

/** The first mirror of Debian proper among the indexes that apt has. */
const mirrorInIndexes = async (options: CommandOptions) => {
  const printed = await outputOf(
    "apt-get",
    ["indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages"],
    options
  )
  return /^Debian ((?!.*security)\S+)$/m.exec(printed)?.[1]
}

/**
 * The first mirror in the sources, for fresh images where apt was never updated. No origin is known
 * there, so the URL must contain /debian.
 */
const mirrorInSources = async (options: CommandOptions) => {
  const printed = await outputOf("apt-get", ["update", "--print-uris"], options)
  return /^'((?!.*security)[^']*\/debian\/?)\/dists\//m.exec(printed)?.[1]
}

/**
 * Written to a file, as only a file can clear the machine's own hooks, pins and default release.
 * Hooks would change the system.
 */
const aptConfig = (folder: string) => `
#clear APT::Update;
#clear APT::Default-Release;
Dir::Etc::sourcelist "${folder}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "${folder}";
Dir::State::lists "${folder}/lists";
Dir::State::status "${folder}/status";
Dir::Cache "${folder}";
Dir::Cache::archives "${folder}/archives";
Debug::NoLocking "1";
APT::Sandbox::User "";
Acquire::Retries "2";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11-icons-small::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11-icons::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
`

const prepare = async (folder: string, mirror: string, keyring: string): Promise<string> => {
  const config = join(folder, "apt.conf")
  await mkdir(join(folder, "lists", "partial"), { recursive: true })
  await mkdir(join(folder, "archives", "partial"), { recursive: true })
  await writeFile(join(folder, "status"), "")
  await writeFile(join(folder, "sources.list"), `deb [signed-by=${keyring}] ${mirror} sid main\n`)
  await writeFile(config, aptConfig(folder))
  return config
}

/**
 * The path of a nats-server from Debian sid, unpacked without root: apt runs with a sources list
 * and state folders of its own. Rejects with the reason.
 */
const fromDebian = async (place: Place): Promise<string> => {
  const options = { ...place, timeoutMillis: 60_000 }
  await outputOf("apt-get", ["--version"], options)
  const keyring = keyrings.find(existsSync)
  if (keyring === undefined)
    throw new Error("no /usr/share/keyrings/debian-archive-keyring.* to check signatures with")
  const mirror =
    (await mirrorInIndexes(options)) ?? (await mirrorInSources(options).catch(() => undefined))
  if (mirror === undefined) throw new Error("apt is not set up for Debian")
  place.say("fetching nats-server from Debian ...")
  return install(place, async (folder) => {
    const config = await prepare(folder, mirror, keyring)
    await outputOf("apt-get", ["-c", config, "update", "--error-on=any"], options)
    // `apt-get download` writes into the current folder.
    await outputOf(
      "sh",
      ["-c", 'cd "$1" && exec apt-get -c "$2" download nats-server', "sh", folder, config],
      options
    )
    const archive = (await readdir(folder)).find((name) => name.endsWith(".deb"))
    if (archive === undefined) throw new Error("apt-get download left no package")
    await outputOf("dpkg", ["-x", join(folder, archive), join(folder, "unpacked")], options)
    return join(folder, "unpacked", "usr", "sbin", "nats-server")
  })
}
