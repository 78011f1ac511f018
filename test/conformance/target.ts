// The server under test: the one at TARGET_URL, or services that this suite starts.
//
// `make test BASE_URL=...` sets TARGET_URL, because Vite overwrites BASE_URL. That server must
// accept subscriptions at PUSH_ORIGIN (default: the one below) and its subdomains, accept PUBLISHER
// (`user:password`) as a publisher with the right `users`, and OPERATOR as an operator, hash user
// ids with USERID_HMAC_SECRET, and close the channels that are closed below.
import { once } from "node:events"
import { Agent, createServer, request } from "node:http"
import { until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { claimPort } from "../support/ports.ts"
import { type Service, type ServiceOptions, startService } from "../support/service.ts"
import type { Target } from "./api.ts"
import { exchange } from "./http.ts"
import { basicauth, pairs } from "./logins/basicauth.ts"
import type { Login, Users } from "./logins/login.ts"

const secret = process.env["USERID_HMAC_SECRET"] ?? "0123456789abcdef0123456789abcdef"
const publisher = process.env["PUBLISHER"] ?? "publisher:secret"
const operator = process.env["OPERATOR"] ?? "operator:secret"
const pushOrigin = process.env["PUSH_ORIGIN"] ?? "https://push.example.com"

/** The URL of another server, whose API is at /v1. */
export const targetUrl = process.env["TARGET_URL"] || undefined

const basicUsers = pairs(secret)

/** Closes `closed-*` to everybody, and `closed-club-*` to all but the publisher. */
const rightsIn = ({ idOf }: Pick<Users, "idOf">) => ({
  BELLCAST_CHANNEL_WRITE_PRINCIPALS: idOf(publisher),
  BELLCAST_USER_WRITE_PRINCIPALS: idOf(publisher),
  BELLCAST_CHANNEL_REGISTER_PRINCIPALS: `closed-*= closed-club-*=${idOf(publisher)}`,
  BELLCAST_OPERATOR_PRINCIPALS: idOf(operator)
})

const env = {
  BELLCAST_USERID_HMAC_SECRET: secret,
  ...rightsIn(basicUsers),
  BELLCAST_PUSH_HOSTS: "push.example.com, *.example.org",
  BELLCAST_ALLOW_LOOPBACK_ENDPOINTS: "false"
}

/** All roles but delivery: no case needs a push service. */
const roles = "gateway,projection,fanout,tally"

export interface Running extends AsyncDisposable {
  readonly target: Target
  /** The same gateways at another address, where they take turns of its own. */
  readonly withTurns: () => Promise<Target>
}

const common = { publisher, operator, secret, pushOrigin }

export const targetOf = (origin: string): Target => ({
  ...common,
  origin,
  login: basicauth,
  users: basicUsers,
  isWhole: true
})

/** Waits until the heartbeat succeeds: writes need a running projector. */
const healthy = (origin: string) =>
  until(
    () => exchange(origin, { method: "GET", target: "/v1/__heartbeat__" }),
    ({ status }) => status === 200
  )

export const startOwn = (
  natsUrl: string,
  options: Omit<ServiceOptions, "natsUrl"> = {}
): Promise<Service> => startService({ natsUrl, roles, ...options, env: { ...env, ...options.env } })

/** A proxy that sends requests to several servers in turn. */
const alternate = async (ports: ReadonlyArray<number>) => {
  const agent = new Agent({ keepAlive: true })
  let turn = 0
  const server = createServer((incoming, outgoing) => {
    const { headers, method, url } = incoming
    const port = ports[turn++ % ports.length]
    const forwarded = request(
      { agent, host: "127.0.0.1", port, method, path: url, headers },
      (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers)
        response.pipe(outgoing)
      }
    )
    forwarded.on("error", () => outgoing.destroy())
    incoming.pipe(forwarded)
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as { port: number }
  return { origin: `http://127.0.0.1:${port}`, close: () => server.close().closeAllConnections() }
}

/** Processes that this suite started. */
export interface Own extends Running {
  /** The first gateway. */
  readonly service: Service
}

/** Gateways whose only policy is that of a login: one, or two behind one address. */
export const startFor = async (
  login: Login,
  natsUrl: string,
  gateways: 1 | 2 = 1,
  options: Pick<ServiceOptions, "roles" | "env" | "program"> = {}
): Promise<Own> => {
  await using stack = new AsyncDisposableStack()
  const ports = await Promise.all(Array.from({ length: gateways }, claimPort))
  const front = gateways === 1 ? undefined : await alternate(ports)
  if (front !== undefined) stack.defer(front.close)
  const origin = front?.origin ?? `http://127.0.0.1:${ports[0]}`
  const users = stack.use(await login.start({ origin, secret }))
  const env = {
    ...rightsIn(users),
    ...users.env,
    ...options.env
  }
  const [port, ...others] = ports
  const service = stack.use(await startOwn(natsUrl, { ...options, port: port!, env }))
  for (const other of others)
    stack.use(await startOwn(natsUrl, { ...options, port: other, env, roles: "gateway" }))
  const all = stack.move()
  const target = { ...common, origin, login, users, isWhole: false }
  return {
    service,
    target,
    withTurns: async () => {
      const { close, origin } = await alternate(ports)
      all.defer(close)
      return { ...target, origin }
    },
    [Symbol.asyncDispose]: () => all.disposeAsync()
  }
}

/** The server at TARGET_URL, or new gateways behind one address. */
export const start = async (
  gateways: 1 | 2,
  login: Login = basicauth,
  options: Pick<ServiceOptions, "program" | "roles"> = {}
): Promise<Running> => {
  if (targetUrl !== undefined) {
    const target = targetOf(new URL(targetUrl).origin)
    return { target, withTurns: async () => target, [Symbol.asyncDispose]: async () => {} }
  }
  await using stack = new AsyncDisposableStack()
  const nats = stack.use(await startNats())
  const own = stack.use(await startFor(login, nats.url, gateways, options))
  await healthy(own.target.origin)
  const all = stack.move()
  return { ...own, [Symbol.asyncDispose]: () => all.disposeAsync() }
}
