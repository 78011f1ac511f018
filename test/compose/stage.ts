// A copy of the checkout in which the commands of the documents run, with one version of Compose.
import { spawn } from "node:child_process"
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { makeAuthority } from "../support/certificates.ts"
import { projectRoot } from "../support/documents.ts"
import { startPushService } from "../support/push-service.ts"
import { run } from "./run.ts"

/** Everything is tested with these: the folders that the Makefile's rules fill. */
export const versions = readdirSync(join(projectRoot, ".tools/compose"))

/** The service refuses to push to private addresses. So the containers get public ones. */
const network = { name: "bellcast-test", subnet: "11.83.0.0/24", gateway: "11.83.0.1" }
const pushHost = "push.example.net"

const override = `
services:
  bellcast:
    extra_hosts: ["${pushHost}:${network.gateway}"]
    volumes: ["./authority-ca.pem:/authority.pem:ro"]
networks:
  default: { external: true, name: ${network.name} }
`
const completed = {
  BELLCAST_VAPID_SUBJECT: "mailto:ops@example.org",
  BELLCAST_AUTH_POLICIES: "basicauth",
  BELLCAST_CHANNEL_WRITE_PRINCIPALS: "system.Authenticated"
}
const further = `
BELLCAST_PUSH_HOSTS=${pushHost}
BELLCAST_ALLOW_LOOPBACK_ENDPOINTS=true
BELLCAST_RETRY_BASE_MILLIS=200
NODE_EXTRA_CA_CERTS=/authority.pem
BELLCAST_AUTH_OAUTH_CLIENT_SECRET='a$b#c "d" e'
`

const copied = ["src", "streams", "package.json", "package-lock.json", ".npmrc", ".dockerignore"]
const linked = ["node_modules", ".tools"]

const cliFolder = (folder: string, version: string) => {
  const plugins = join(folder, "docker", "cli-plugins")
  mkdirSync(plugins, { recursive: true })
  const tools = join(projectRoot, ".tools")
  symlinkSync(join(tools, "compose", version, "docker-compose"), join(plugins, "docker-compose"))
  const [buildx] = readdirSync(join(tools, "buildx"))
  symlinkSync(join(tools, "buildx", buildx!, "docker-buildx"), join(plugins, "docker-buildx"))
  return join(folder, "docker")
}

const makeNetwork = async (sh: (command: string) => Promise<string>) => {
  const options = `--subnet ${network.subnet} --gateway ${network.gateway}`
  await sh(`docker network rm ${network.name} || true`)
  await sh(`docker network create ${options} ${network.name}`)
}

export const makeStage = async (version: string) => {
  const folder = await mkdtemp(join(tmpdir(), "bellcast-"))
  for (const each of [...copied, "compose.yaml", "Makefile"])
    cpSync(join(projectRoot, each), join(folder, each), {
      recursive: true,
      preserveTimestamps: true
    })
  for (const each of linked) symlinkSync(join(projectRoot, each), join(folder, each))
  writeFileSync(join(folder, "override.yaml"), override)
  const authority = makeAuthority(folder, "authority")
  const env = {
    ...process.env,
    DOCKER_CONFIG: cliFolder(folder, version),
    COMPOSE_FILE: "compose.yaml:override.yaml",
    COMPOSE_PROJECT_NAME: "bellcast-test",
    COMPOSE_ANSI: "never"
  }
  const sh = (command: string) => run("bash", ["-ec", command], { cwd: folder, env })
  await makeNetwork(sh)
  const { cert, key } = authority.sign(`DNS:${pushHost}`)
  const certificate = { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") }
  const site = { name: pushHost, address: network.gateway, certificate }
  const push = await startPushService({ site })
  return {
    push,
    folder,
    sh,
    /** Starts a command and returns what it has printed so far; ends by itself or at the end. */
    begin: (command: string) => {
      const child = spawn("bash", ["-ec", command], { cwd: folder, env, detached: true })
      let output = ""
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding("utf8").on("data", (text: string) => (output += text))
      return { child, output: () => output }
    },
    /** Completes the file of secrets as an operator does. */
    complete: (file: string) => {
      let text = readFileSync(join(folder, file), "utf8")
      for (const [name, value] of Object.entries(completed))
        text = text.replace(new RegExp(`^${name}=$`, "m"), `${name}=${value}`)
      writeFileSync(join(folder, file), `${text}${further}`)
    },
    [Symbol.asyncDispose]: async () => {
      await sh("docker compose down --volumes").catch(() => undefined)
      await sh(`docker network rm ${network.name}`).catch(() => undefined)
      await push[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    }
  }
}
