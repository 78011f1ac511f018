// Kinto's own JavaScript client works unchanged: settings, batches, pages, errors, backoff.
import { EventEmitter } from "node:events"
import { createRequire } from "node:module"
import type KintoClient from "kinto-http"
import { expect, it } from "vitest"
import { startNats } from "../../support/nats.ts"
import { Api, type StoredObject } from "../api.ts"
import type { Headers, Login } from "../logins/login.ts"
import { startFor } from "../target.ts"

// The build for browsers. That for Node.js needs polyfills of fetch, atob and FormData.
const Kinto: typeof KintoClient.default = createRequire(import.meta.url)(
  "kinto-http/dist/kinto-http.min.js"
)

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => {
      throw new Error("it did not fail")
    },
    (error: Error) => error
  )

type Client = InstanceType<typeof Kinto>

const readsRoot = async (client: Client, api: Api) => {
  const { settings, user, capabilities, http_api_version } = await client.fetchServerInfo()
  expect(settings).toMatchObject({ batch_max_requests: 25, readonly: false })
  expect([http_api_version, user?.id, typeof capabilities]).toEqual(["1.0", api.userId(), "object"])
  expect(client.backoff).toBeGreaterThan(5_000)
}

/** More than one batch holds: the client splits them by the server's setting. */
const storesThirty = async (client: Client, api: Api) => {
  const responses = await client.batch((batch: KintoClient.default) => {
    for (let i = 0; i < 30; i++) {
      batch.execute({
        method: "POST",
        path: "/subscriptions",
        headers: {},
        body: { data: api.subscription(`n${i}`) }
      })
    }
  })
  expect((responses as ReadonlyArray<{ status: number }>).map(({ status }) => status)).toEqual(
    Array(30).fill(201)
  )
}

/** Returns an object of the list. */
const followsPages = async (client: Client, api: Api, headers: Headers) => {
  const list = (options: object) =>
    client.paginatedList<StoredObject>("/subscriptions", options, { headers })
  const all = await list({ limit: 7, pages: 99 })
  const ids = new Set(all.data.map(({ id }) => id))
  expect([all.data.length, ids.size, all.hasNextPage]).toEqual([31, 31, false])
  const page = await list({ limit: 20, sort: "last_modified" })
  expect([page.data.length, page.hasNextPage, page.last_modified]).toEqual([
    20,
    true,
    all.last_modified
  ])
  expect((await page.next()).data.length).toBe(11)
  await api.stored("late")
  const since = await list({ since: `"${all.last_modified}"` })
  expect(since.data.map(({ endpoint }) => endpoint)).toEqual([api.subscription("late").endpoint])
  return all.data[0]
}

const reportsErrors = async (client: Client, path: string, headers: Headers) => {
  const stale = { ...headers, "If-Match": '"1"' }
  expect(await failure(client.execute({ method: "DELETE", path, headers: stale }))).toMatchObject({
    response: { status: 412 },
    data: { errno: 114 }
  })
  const unknown = { method: "GET", path: `/subscriptions/${"0".repeat(64)}`, headers } as const
  expect(await failure(client.execute(unknown))).toMatchObject({
    response: { status: 404 },
    data: { errno: 110 }
  })
  const anonymous = { method: "GET", path: "/subscriptions", headers: {} } as const
  expect(await failure(client.execute(anonymous))).toMatchObject({
    response: { status: 401 },
    data: { errno: 104 }
  })
}

/** kinto-http before a gateway with the policy of a login. */
export const testKintoClient = (login: Login): void => {
  it("reads the root, batches, follows pages, reports errors and when to retry", {
    timeout: 60_000
  }, async () => {
    const nats = await startNats()
    await using own = await startFor(login, nats.url, 1, { env: { BELLCAST_BACKOFF: "7" } })
    const api = new Api(own.target)
    await api.stored("first")
    const headers = await api.headersOf(api.me)
    const events = new EventEmitter()
    const client = new Kinto(api.root, { events, headers, retry: 0 })

    await readsRoot(client, api)
    await storesThirty(client, api)
    const one = await followsPages(client, api, headers)
    const path = `/subscriptions/${one?.id}`
    await reportsErrors(client, path, headers)

    const after = new Promise<number>((resolve) => events.once("retry-after", resolve))
    await nats[Symbol.asyncDispose]()
    expect(await failure(client.execute({ method: "GET", path, headers }))).toMatchObject({
      response: { status: 503 },
      data: { errno: 201 }
    })
    expect((await after) - Date.now()).toBeGreaterThan(0)
  })
}
