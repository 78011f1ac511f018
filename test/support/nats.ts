// A real nats-server with JetStream for one test: a container where a Docker engine responds, the
// local binary elsewhere. BELLCAST_TEST_NATS=container|binary forces one of them.
import { startNatsBinary } from "./nats-binary.ts"
import { dockerAnswers } from "./nats-docker.ts"

export interface NatsOptions {
  /** On disk before it is acknowledged (the default), as the service runs it; false is faster. */
  readonly syncAlways?: boolean
}

export interface TestNats extends AsyncDisposable {
  /** The same over kill and restart, as is the data. */
  readonly url: string
  /** Its files; undefined in a container. */
  readonly folder: string | undefined
  /** SIGKILL; resolves when it is gone. */
  readonly kill: () => Promise<void>
  /** Stops it if it runs; resolves when it takes connections again. */
  readonly restart: () => Promise<void>
}

export type StartNats = (syncInterval: string) => Promise<TestNats>

/** Imported where it is used: testcontainers takes 0.7 s of CPU time to load. */
const startNatsContainer: StartNats = async (syncInterval) => {
  const container = await import("./nats-container.ts")
  return container.startNatsContainer(syncInterval)
}

/** A Docker engine may have no image and no way to pull it: use the binary then, and print that. */
const containerElseBinary: StartNats = async (syncInterval) => {
  try {
    return await startNatsContainer(syncInterval)
  } catch (error) {
    const reason = error instanceof Error ? error.message : error
    process.stderr.write(`no nats container (${reason}): using the local binary\n`)
    choice = Promise.resolve(startNatsBinary)
    return startNatsBinary(syncInterval)
  }
}

const choose = async (): Promise<StartNats> => {
  const forced = process.env["BELLCAST_TEST_NATS"]
  if (forced === "container") return startNatsContainer
  if (forced === "binary") return startNatsBinary
  if (forced !== undefined)
    throw new Error(`BELLCAST_TEST_NATS is container or binary, not "${forced}"`)
  return (await dockerAnswers()) ? containerElseBinary : startNatsBinary
}

/** Made once a process. */
let choice: Promise<StartNats> | undefined

export const startNats = async ({ syncAlways = true }: NatsOptions = {}): Promise<TestNats> => {
  choice ??= choose()
  const start = await choice
  return start(syncAlways ? "always" : "2m")
}
