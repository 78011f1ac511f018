// Contract 3.5: subscriptions that were imported for stand-ins move to users with their
// registrations. Each case imports one.
import { afterAll, beforeAll, expect } from "vitest"
import { endpointHash } from "#domain/subscription/owners.ts"
import { formerKeys, formerPair, makeFiles, settingsOn } from "../../support/imports.ts"
import { startNats, type TestNats } from "../../support/nats.ts"
import { runCli } from "../../support/run-cli.ts"
import { type Api, otherKeys, type Subscription } from "../api.ts"
import type { Login } from "../logins/login.ts"
import { post, put } from "../sections/subscriptions.ts"
import { type Case, define, run } from "../table.ts"
import { type Own, startFor } from "../target.ts"

/** Stores the subscription of a case for a stand-in, registered on its channel and a closed one. */
type Importer = (api: Api) => Promise<Subscription>

const channelsOf = async (api: Api) => {
  const { json } = await api.send({ method: "GET", path: "/registrations" })
  return json.data.map(({ id }: { readonly id: string }) => id).sort()
}
const bothOf = ({ channel }: Api) => [channel, `closed-${channel}`].sort()

const casesWith = (importOne: Importer): ReadonlyArray<Case> => [
  ...(["POST", "PUT"] as const).map((method) =>
    define<Subscription>({
      name: `moves by ${method} to its user, with its registrations`,
      given: importOne,
      request: (api, data) =>
        method === "POST" ? post(data) : put(String(data["id"]), api.subscription()),
      expected: (api) => ({ status: 201, body: { data: api.subscription() } }),
      also: async (_, api) => expect(await channelsOf(api)).toEqual(bothOf(api))
    })
  ),
  define<Subscription>({
    name: "stays with its registrations where a user stores other keys",
    given: importOne,
    request: (api) => post({ ...api.subscription(), keys: otherKeys }),
    expected: { status: 409, errno: 123 },
    also: async (_, api) => {
      expect(await channelsOf(api)).toEqual([])
      expect((await api.send(post(api.subscription()))).status).toBe(201)
      expect(await channelsOf(api)).toEqual(bothOf(api))
    }
  }),
  define<Subscription>({
    name: "leaves its registrations with its user when it moves on",
    given: async (api) => {
      await importOne(api)
      return api.stored("a", {}, `${api.me}2`)
    },
    request: (api) => post(api.subscription()),
    expected: { status: 201 },
    also: async (_, api) => expect(await channelsOf(api)).toEqual([])
  }),
  define<Subscription>({
    name: "is replaced by one with the present key after it moved, and its channels go on",
    given: async (api) => {
      await importOne(api)
      return api.stored("a", { vapid_public_key: formerPair.publicKey })
    },
    request: (api, { id }) => ({
      ...post(api.subscription("b")),
      body: { data: api.subscription("b"), replaces: id }
    }),
    expected: (api) => ({ status: 201, body: { data: api.subscription("b") } }),
    also: async ({ json }, api) => {
      expect((await api.list()).json.data).toEqual([json.data])
      expect(await channelsOf(api)).toEqual(bothOf(api))
    }
  })
]

/** Gateways whose only policy is that of a login, and a key of another service. */
export const testImports = (login: Login): void => {
  let nats: TestNats
  let own: Own
  beforeAll(async () => {
    nats = await startNats()
    own = await startFor(login, nats.url, 2, { env: formerKeys })
  })
  afterAll(async () => {
    for (const each of [own, nats]) await each?.[Symbol.asyncDispose]()
  })

  const importOne: Importer = async (api) => {
    using files = makeFiles()
    const data = api.subscription()
    const env = {
      ...settingsOn(nats.url),
      BELLCAST_USERID_HMAC_SECRET: api.target.secret,
      BELLCAST_PUSH_HOSTS: new URL(api.target.pushOrigin).hostname
    }
    const channels = bothOf(api).flatMap((channel) => ["--channel", channel])
    const key = ["--vapid-public-key", formerPair.publicKey]
    const { stderr, stdout } = await runCli(["import", files.of([data]), ...key, ...channels], env)
    expect(stdout, stderr).toBe("1 of 1 lines were stored\n")
    return { ...data, id: endpointHash(data.endpoint) }
  }
  run(casesWith(importOne), () => own.target, login)
}
