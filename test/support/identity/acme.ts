// A service whose users a module of the operator names: the policy `acme`.
import { type Answer, call } from "../client.ts"
import { makeFolder } from "../folder.ts"
import { startNats, type TestNats } from "../nats.ts"
import { type Service, startService } from "../service.ts"

/** Names users and their groups: `acme ann|readers|buyers`; with `=` before them as base64url. */
const acmeModule = `export default {
  authenticate: async ({ scheme, token }) => {
    const text = token.startsWith("=") ? Buffer.from(token.slice(1), "base64url").toString() : token
    const [user, ...groups] = text.split("|")
    return scheme === "acme" ? { user, groups } : undefined
  }
}`

type Env = Readonly<Record<string, string>>

export interface Acme extends AsyncDisposable {
  readonly nats: TestNats
  readonly service: Service
  /** Starts another gateway, which is stopped with the others. */
  readonly startGateway: (env: Env) => Promise<Service>
  /** A request with this Authorization, to the first service or another one. */
  readonly send: (
    method: string,
    path: string,
    authorization: string,
    body?: unknown,
    at?: Service
  ) => Promise<Answer>
  readonly isRegistered: (channel: string, user: string) => Promise<boolean>
}

/** A gateway and a projector with a nats-server of their own. `env` may name further policies. */
export const startAcme = async (env: Env): Promise<Acme> => {
  await using stack = new AsyncDisposableStack()
  const { path: cwd } = stack.use(await makeFolder({ "acme.mjs": acmeModule }))
  const nats = stack.use(await startNats({ syncAlways: false }))
  const start = async (roles: string, more: Env) => {
    const all = { BELLCAST_AUTH_POLICIES: "acme=./acme.mjs", ...more }
    return startService({ natsUrl: nats.url, cwd, roles, env: all })
  }
  const service = stack.use(await start("gateway,projection", env))
  const send: Acme["send"] = (method, path, authorization, body, at = service) =>
    call(at.url, method, path, undefined, body, { authorization })
  const all = stack.move()
  return {
    nats,
    service,
    send,
    startGateway: async (more) => all.use(await start("gateway", { ...env, ...more })),
    isRegistered: async (channel, user) => {
      const path = `/channels/${encodeURIComponent(channel)}`
      return (await send("GET", path, `acme ${user}`)).status === 200
    },
    [Symbol.asyncDispose]: () => all.disposeAsync()
  }
}
