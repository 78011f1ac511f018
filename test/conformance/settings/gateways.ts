// Gateways with settings of their own; all share NATS, a projector and the users of a login.
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { startNats } from "../../support/nats.ts"
import { claimPort } from "../../support/ports.ts"
import type { Target } from "../api.ts"
import type { Login } from "../logins/login.ts"
import { define, type Gateway } from "../table.ts"
import { startFor, startOwn } from "../target.ts"
import { addresses } from "./addresses.ts"
import { lifecycle } from "./lifecycle.ts"
import { limits } from "./limits.ts"

/**
 * Processes that start at the same time. All at once would each take over 30 s on a busy machine.
 */
const atOnce = 4

const deployed: Gateway = [
  "deployed",
  {},
  [
    define({
      name: "says what is deployed, from the file where it was started",
      request: { method: "GET", path: "/__version__", as: null },
      expected: {
        status: 200,
        exactly: { name: "bellcast", version: "1.2.3", commit: "abc", source: "here" }
      }
    })
  ]
]

export const gateways: ReadonlyArray<Gateway> = [...lifecycle, ...addresses, ...limits, deployed]

/** Run as one process each: the settings of one do not touch the cases of the others. */
const together: ReadonlyArray<ReadonlyArray<string>> = [
  ["under load", "behind a proxy"],
  ["with small pages and batches of any number", "deployed"],
  ["of some origins", "with endpoints switched off"]
]

const alone = gateways.map(([name]) => [name]).filter(([name]) => !together.flat().includes(name!))

const prefixed = (env: Gateway[1]): Gateway[1] =>
  Object.fromEntries(Object.entries(env).map(([name, value]) => [`BELLCAST_${name}`, value]))

const settingsOf = (names: ReadonlyArray<string>): Gateway[1] =>
  Object.assign({}, ...gateways.filter(([name]) => names.includes(name)).map(([, env]) => env))

/** Makes the working directory of the gateway that is deployed. */
const deployedFolder = async () => {
  const folder = await mkdtemp(join(tmpdir(), "bellcast-"))
  const version = '{"name":"bellcast","version":"1.2.3","commit":"abc","source":"here"}'
  await writeFile(join(folder, "version.json"), version)
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) }
}

export interface Started extends AsyncDisposable {
  readonly natsUrl: string
  readonly targetOf: (name: string) => Target
}

/** Starts the gateways, whose users log in at one without settings: one may be read-only. */
export const startGateways = async (login: Login): Promise<Started> => {
  await using stack = new AsyncDisposableStack()
  const { url: natsUrl } = stack.use(await startNats())
  const { target } = stack.use(await startFor(login, natsUrl, 1, { roles: "gateway,projection" }))
  const { folder } = stack.use(await deployedFolder())
  const origins = new Map<string, string>()
  const start = async (names: ReadonlyArray<string>) => {
    const port = await claimPort()
    const settings = prefixed({
      CHANNEL_WRITE_PRINCIPALS: target.users.idOf(target.publisher),
      USER_WRITE_PRINCIPALS: target.users.idOf(target.publisher),
      ...(login.namesHost ? { HTTP_HOST: `127.0.0.1:${port}` } : {}),
      ...settingsOf(names)
    })
    const env = { ...target.users.env, ...settings }
    const cwd = names.includes("deployed") ? { cwd: folder } : {}
    stack.use(await startOwn(natsUrl, { roles: "gateway", port, env, ...cwd }))
    for (const name of names) origins.set(name, `http://127.0.0.1:${port}`)
  }
  const processes = [...together, ...alone]
  for (let i = 0; i < processes.length; i += atOnce)
    await Promise.all(processes.slice(i, i + atOnce).map(start))
  const all = stack.move()
  return {
    natsUrl,
    targetOf: (name) => ({ ...target, origin: origins.get(name)! }),
    [Symbol.asyncDispose]: () => all.disposeAsync()
  }
}
