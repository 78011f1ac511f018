// Each policy as the only one of a gateway: what an outage of its server does, all cases of section
// 7, and some of each other one. Sections 4.5, 4.6 and 4.10 to 4.13 run with two policies, one of
// tokens and one of headers. `make test-identity` runs all cases with each policy.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { startNats } from "../support/nats.ts"
import { Api, type Target } from "./api.ts"
import { testPolicyOutage } from "./flows/policy-outage.ts"
import { logins as shapes } from "./logins/all.ts"
import { openid, verifyCall } from "./logins/bearer.ts"
import type { Login } from "./logins/login.ts"
import { proxy } from "./logins/proxy.ts"
import { callers } from "./sections/callers.ts"
import { direct } from "./sections/direct.ts"
import { directProgress } from "./sections/direct-progress.ts"
import { events } from "./sections/events.ts"
import { members } from "./sections/members.ts"
import { operators } from "./sections/operators.ts"
import { persons } from "./sections/persons.ts"
import { pushes } from "./sections/pushes.ts"
import { redrives } from "./sections/redrives.ts"
import { users } from "./sections/users.ts"
import { sections } from "./sections.ts"
import { type Case, run } from "./table.ts"
import { type Running, startFor, startOwn, targetUrl } from "./target.ts"

/** Cases that depend on who the caller is. */
const chosen: ReadonlyArray<string> = [
  "stores nothing for a page of another site that does not say it sends JSON",
  "stores for a page of another site by credentials that no browser adds by itself",
  "stores for a page of another site that says it sends JSON",
  "stores a new subscription and shows all of it",
  "keeps the lists of two users apart",
  "does not show one user's subscription to another",
  "takes a page token of GET as often as it comes",
  "shows the channel to who just registered",
  "counts every user once",
  "lets nobody register on a closed channel but by a principal that is named",
  "does not show a channel to who left",
  "does not show a channel to nobody",
  "accepts a broadcast of data",
  "lets only publishers broadcast",
  "lets nobody broadcast",
  "takes the same key for the same broadcast",
  "shows the progress of a broadcast, in counts that add up",
  "shows no broadcast to a caller who may not publish",
  "lets a running broadcast be cancelled",
  "accepts a broadcast that starts later",
  "does not let an operator change its data, who does not publish",
  "knows no broadcast of which a caller without rights changes its start",
  "knows no running broadcast that a caller without rights wants to be cancelled",
  "lets nobody without credentials want a running broadcast to be cancelled",
  "needs nobody to be somebody, but its entries may"
]

const all = sections.flatMap(([, cases]) => cases)

const named = (name: string): Case => {
  const found = all.find((each) => each.name === name)
  if (found === undefined) throw new Error(`there is no case that ${name}`)
  return found
}

const ofEach = [...chosen.map(named), ...callers, ...users, ...operators]

const ofTwo = [
  ...members,
  ...pushes,
  ...events,
  ...redrives,
  ...persons,
  ...direct,
  ...directProgress
]

/** Without the second shape of oauth: a process costs more than its cases. */
const logins = shapes.filter((login) => login !== verifyCall)

/** Settings of a gateway with all policies. */
const envOfAll = (targets: ReadonlyArray<Target>): Readonly<Record<string, string>> => ({
  ...Object.assign({}, ...targets.map(({ users }) => users.env)),
  BELLCAST_AUTH_POLICIES: targets.map(({ users }) => users.env["BELLCAST_AUTH_POLICIES"]).join(" ")
})

/** Processes that start at the same time. */
const atOnce = 4

describe.skipIf(targetUrl !== undefined)("a gateway with one policy", () => {
  const stack = new AsyncDisposableStack()
  const running = new Map<Login, Running>()
  let natsUrl = ""
  const targetFor = (login: Login) => running.get(login)!.target

  beforeAll(async () => {
    const nats = stack.use(await startNats({ syncAlways: false }))
    natsUrl = nats.url
    const start = async (login: Login, options = {}) => {
      running.set(login, stack.use(await startFor(login, nats.url, 1, options)))
    }
    const [first, ...others] = logins
    await start(first!)
    for (let i = 0; i < others.length; i += atOnce)
      await Promise.all(
        others.slice(i, i + atOnce).map((login) => start(login, { roles: "gateway" }))
      )
  })
  afterAll(() => stack.disposeAsync())

  // Before all cases: an issuer whose keys are known is needed for unknown ones only.
  for (const login of logins) testPolicyOutage(login, () => targetFor(login))

  for (const login of logins)
    describe.concurrent(login.name, () => {
      const isOneOfTwo = login === openid || login === proxy
      run(isOneOfTwo ? [...ofEach, ...ofTwo] : ofEach, () => targetFor(login), login)
    })

  it("acts in each entry of a batch as the user of its policy, where all are on", async () => {
    const targets = logins.map(targetFor)
    const outer = targetFor(proxy)
    await using service = await startOwn(natsUrl, { roles: "gateway", env: envOfAll(targets) })
    const api = new Api({ ...outer, origin: `http://127.0.0.1:${service.port}` })
    // Each twice, so that entries of all policies follow each other.
    const entries = [...targets, ...targets.toReversed()]
    const requests = entries.map(async ({ users }) => {
      const headers = users === outer.users ? {} : await users.headersOf(api.me)
      return { method: "GET", path: "/", headers }
    })
    const body = { requests: await Promise.all(requests) }
    const { json } = await api.send({ method: "POST", path: "/batch", body })
    const callers = json.responses.map((each: { body: { user?: object } }) => each.body.user)
    expect(callers).toMatchObject(entries.map(({ users }) => ({ id: users.idOf(api.me) })))
  })
})
