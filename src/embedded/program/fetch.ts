// Fetches nats-server without Debian: built by Go from the official module, or copied out of the
// official Docker image.
import { join } from "node:path"
import { install, type Place } from "./place.ts"
import { run } from "./run.ts"

/** The version that is fetched. */
export const serverVersion = "2.15.1"

export const fromGo = async (place: Place): Promise<string> => {
  await run("go", ["version"], { ...place, timeoutMillis: 5_000 })
  place.say(`building nats-server ${serverVersion} with go (a minute or two) ...`)
  return install(place, async (folder) => {
    // Go's caches are put into this folder, to leave the user's alone. Without -modcacherw they
    // could not be deleted.
    const env = [
      `GOBIN=${folder}`,
      `GOPATH=${folder}/path`,
      `GOCACHE=${folder}/cache`,
      "GOFLAGS=-modcacherw",
      "CGO_ENABLED=0"
    ]
    const module = `github.com/nats-io/nats-server/v2@v${serverVersion}`
    await run("go", ["install", module], { ...place, env, timeoutMillis: 300_000 })
    return join(folder, "nats-server")
  })
}

export const fromDocker = async (place: Place): Promise<string> => {
  const short = { ...place, timeoutMillis: 10_000 }
  await run("docker", ["version", "--format", "{{.Server.Version}}"], short)
  place.say(`copying nats-server out of the image nats:${serverVersion} ...`)
  return install(place, async (folder) => {
    const container = (
      await run("docker", ["create", `nats:${serverVersion}`], { ...place, timeoutMillis: 120_000 })
    ).trim()
    try {
      const file = join(folder, "nats-server")
      await run("docker", ["cp", `${container}:/nats-server`, file], short)
      return file
    } finally {
      await run("docker", ["rm", container], short).catch(() => undefined)
    }
  })
}
