// Finds a nats-server that is new enough, or fetches one into .tools/. Changes nothing of the
// user's system.
import { existsSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { natsServerReleases } from "#telemetry/redaction.ts"
import { fromDebian } from "./debian.ts"
import type { Place } from "./install.ts"
import { usableVersion, versionMin } from "./install.ts"
import { fromRelease, release } from "./release.ts"

export class NatsServerMissing extends Schema.TaggedError<NatsServerMissing>()(
  "NatsServerMissing",
  { message: Schema.String }
) {}

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
  "official release": fromRelease,
  "Debian package (sid)": fromDebian
}

const shortestWay =
  `Shortest way: download nats-server ${release.version} from ${natsServerReleases} and set ` +
  "BELLCAST_NATS_SERVER to its path, or set BELLCAST_NATS_URL to a server that runs already."

const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

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
  throw new Error([none, ...tried, shortestWay].join("\n"))
}

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
