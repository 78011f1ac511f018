// Whether a Docker engine answers, found out in a fraction of a second.
import { get } from "node:http"
import { homedir } from "node:os"
import { join } from "node:path"

const answerTimeoutMillis = 250

const pings = (
  target: { readonly socketPath: string } | { readonly host: string; readonly port: string }
): Promise<boolean> =>
  new Promise((resolve) => {
    const request = get({ ...target, path: "/_ping", timeout: answerTimeoutMillis }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    request.once("timeout", () => request.destroy(new Error("timeout")))
    request.once("error", () => resolve(false))
  })

const targets = () => {
  const named = process.env["DOCKER_HOST"]
  if (named === undefined) {
    const sockets = [
      "/var/run/docker.sock",
      join(process.env["XDG_RUNTIME_DIR"] ?? "/run/user/0", "docker.sock"),
      join(homedir(), ".docker/run/docker.sock")
    ]
    return sockets.map((socketPath) => ({ socketPath }))
  }
  const url = new URL(named)
  if (url.protocol === "unix:") return [{ socketPath: url.pathname }]
  return [{ host: url.hostname, port: url.port }]
}

export const dockerAnswers = async (): Promise<boolean> =>
  (await Promise.all(targets().map(pings))).includes(true)
