// A real nginx in front of a service, where it is installed.
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { makeFolder } from "./folder.ts"
import { claimPort } from "./ports.ts"

export const isNginxMissing = spawnSync("nginx", ["-v"]).status !== 0

/** nginx with a server of these lines. */
export const startNginx = async (lines: string) => {
  const port = await claimPort()
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (each) => `${each}_temp_path ${each};`
  )
  const server = `server { listen 127.0.0.1:${port}; ${lines} }`
  const folder = await makeFolder({
    "nginx.conf": `daemon off; master_process off; pid nginx.pid; events {}
      http { access_log off; ${paths.join(" ")} ${server} }`
  })
  const args = ["-p", folder.path, "-e", "stderr", "-c", "nginx.conf"]
  const nginx = spawn("nginx", args, { stdio: "inherit" })
  const exited = once(nginx, "exit")
  return {
    url: `http://localhost:${port}`,
    [Symbol.asyncDispose]: async () => {
      nginx.kill("SIGKILL")
      await exited
      await folder[Symbol.asyncDispose]()
    }
  }
}
