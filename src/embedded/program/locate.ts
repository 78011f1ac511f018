// Finds a nats-server that is new enough, or fetches one into .tools/. Changes nothing of the
// user's system.
import { existsSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Config, Effect, Option, Schema } from "effect"
import { natsServerReleases } from "#telemetry/redaction.ts"
import { fromDebian } from "./debian.ts"
import type { Place } from "./place.ts"
import { fromRelease, release } from "./release.ts"
import { usableVersion, versionMin } from "./version.ts"

export class NatsServerMissing extends Schema.TaggedError<NatsServerMissing>()(
  "NatsServerMissing",
  { message: Schema.String }
) {}

const explicit = async (place: Place) => {
  if (place.explicit === undefined) throw new Error("not set")
  await usableVersion(place.explicit, place)
  return place.explicit
}

const onPath = async (place: Place) => {
  const file = place.path
    .split(":")
    .map((folder) => join(folder, "nats-server"))
    .find(existsSync)
  if (file === undefined) throw new Error("none there")
  await usableVersion(file, place)
  return file
}

const fetchedEarlier = async (place: Place) => {
  const file = join(place.toolsDir, "nats-server")
  if (!existsSync(file)) throw new Error("none there")
  await usableVersion(file, place)
  return file
}

interface Step {
  readonly name: string
  readonly find: (place: Place) => Promise<string>
}

/** Tried in this order, from the fastest to the slowest. */
const steps: ReadonlyArray<Step> = [
  { name: "BELLCAST_NATS_SERVER", find: explicit },
  { name: "PATH", find: onPath },
  { name: ".tools/nats-server", find: fetchedEarlier },
  { name: "official release", find: fromRelease },
  { name: "Debian package (sid)", find: fromDebian }
]

const shortestWay =
  `Shortest way: download nats-server ${release.version} from ${natsServerReleases} and set ` +
  "BELLCAST_NATS_SERVER to its path, or set BELLCAST_NATS_URL to a server that runs already."

/** The path of a usable nats-server. Rejects with one message that says what was tried. */
export const locateIn = async (place: Place): Promise<string> => {
  const tried: Array<string> = []
  for (const { name, find } of steps) {
    try {
      return await find(place)
    } catch (error) {
      place.signal.throwIfAborted()
      const reason = error instanceof Error ? error.message : String(error)
      // If the operator names a server, no other one is taken in its place.
      if (find === explicit && place.explicit !== undefined)
        throw new Error(`${name}: ${reason} (${versionMin} or newer is needed)`)
      tried.push(`  ${name}: ${reason}`)
    }
  }
  throw new Error(
    [
      `No nats-server ${versionMin} or newer was found, and none could be fetched.`,
      ...tried,
      shortestWay
    ].join("\n")
  )
}

const toolsDir = fileURLToPath(new URL("../../../.tools", import.meta.url))

/** The path of a usable nats-server, fetched if need be. */
export const locateNatsServer = Effect.gen(function* () {
  const settings = yield* Config.all({
    explicit: Config.option(Config.String("BELLCAST_NATS_SERVER")),
    path: Config.String("PATH").pipe(Config.withDefault("/usr/local/bin:/usr/bin:/bin"))
  })
  return yield* Effect.tryPromise({
    try: (signal) => {
      const say = (line: string) => void process.stderr.write(`${line}\n`)
      return locateIn({
        explicit: Option.getOrUndefined(settings.explicit) || undefined,
        path: settings.path,
        toolsDir,
        release,
        say,
        signal
      })
    },
    catch: (error) =>
      new NatsServerMissing({ message: error instanceof Error ? error.message : String(error) })
  })
})
