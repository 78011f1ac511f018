// Policies in front of a running gateway: which is asked, in which order, and what goes wrong in a
// module of an operator.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { basic } from "#test/client.ts"
import { textOf } from "#test/documents.ts"
import { type Folder, makeFolder } from "#test/folder.ts"
import { userIn } from "#test/identity/requests.ts"
import { startNats, type TestNats } from "#test/nats.ts"
import { type Service, startService } from "#test/service.ts"

/** The example in the document, as a reader would copy it. */
const [, example = ""] =
  /```js\n(\/\/ acme-policy\.js[\s\S]*?)```/.exec(textOf("src/identity/README.md")) ?? []

/** A module that does everything that it should not. */
const broken = `export default {
  authenticate: ({ scheme, token }) => {
    if (scheme !== "broken") return Promise.resolve(undefined)
    if (token === "throws") throw new Error("a secret token")
    if (token === "rejects") return Promise.reject("a secret token")
    if (token === "hangs") return new Promise(() => {})
    return Promise.resolve(JSON.parse(token))
  }
}`

const garbage = [
  "7",
  "[]",
  '{"user":""}',
  '{"user":7.5}',
  '{"user":"a","groups":[1]}',
  '{"user":"\\u0000"}'
]

describe("policies of an operator", () => {
  let nats: TestNats
  let service: Service
  let folder: Folder
  beforeAll(async () => {
    nats = await startNats()
    folder = await makeFolder({ "acme-policy.mjs": example, "broken.mjs": broken })
    service = await startService({
      natsUrl: nats.url,
      cwd: folder.path,
      roles: "gateway,projection,fanout",
      env: {
        BELLCAST_AUTH_POLICIES: "broken=./broken.mjs acme=./acme-policy.mjs basicauth-tests",
        BELLCAST_CHANNEL_WRITE_PRINCIPALS: "news*=group:acme:editor group:acmee:editor openid:7",
        BELLCAST_CHANNEL_REGISTER_PRINCIPALS: "vip=oauth:7 board=",
        BELLCAST_USER_WRITE_PRINCIPALS: "acme:alice proxy:shop"
      }
    })
  })
  afterAll(async () => {
    await service.stop()
    await Promise.all([folder, nats].map((each) => each[Symbol.asyncDispose]()))
  })

  const send = (path: string, authorization?: string, method = "GET") =>
    fetch(`${service.url}${path}`, {
      method,
      headers: authorization === undefined ? {} : { authorization }
    })
  const userOf = async (authorization: string) => userIn(await send("/", authorization))

  it("know the users of the module in the document, with their groups", async () => {
    expect(await userOf("Acme 5ecret")).toEqual({
      id: "acme:alice",
      principals: ["acme:alice", "system.Everyone", "system.Authenticated", "group:acme:editor"],
      users: true
    })
    expect(await userOf("aCME   5ecret")).toMatchObject({ id: "acme:alice" })
    expect(await userOf("Acme wrong")).toBeUndefined()
  })

  it("are asked in order, each with its own prefix and challenge", async () => {
    expect(await userOf(basic("anna"))).toMatchObject({
      id: expect.stringMatching(/^basicauth-tests:[0-9a-f]{64}$/)
    })
    const refused = await send("/subscriptions", "Acme wrong")
    expect(refused.status).toBe(401)
    expect(refused.headers.get("www-authenticate")).toBe(
      'broken realm="Realm", Acme realm="acme", Basic realm="Realm"'
    )
  })

  it("let a group publish on the channels of its pattern, and nobody else", async () => {
    for (const [setting, policies] of [
      ["CHANNEL_WRITE", "acmee, openid"],
      ["CHANNEL_REGISTER", "oauth"],
      ["USER_WRITE", "proxy"]
    ])
      expect(service.output()).toContain(
        `BELLCAST_${setting}_PRINCIPALS names users of policies that are off (${policies})`
      )
    expect((await send("/channels/news-of-today", "Acme 5ecret", "POST")).status).toBe(202)
    expect((await send("/channels/sport", "Acme 5ecret", "POST")).status).toBe(403)
    expect((await send("/channels/news-of-today", basic("anna"), "POST")).status).toBe(403)
  })

  it("cost a 503 and no more when they throw, hang, or return garbage", async () => {
    const answers = await Promise.all(
      ["throws", "rejects", "hangs", ...garbage].map(async (token) => {
        const { headers, status } = await send("/subscriptions", `Broken ${token}`)
        return { token, status, retryAfter: headers.get("retry-after") }
      })
    )
    expect(answers).toEqual(answers.map(({ token }) => ({ token, status: 503, retryAfter: "3" })))
    expect((await send("/subscriptions", "Acme 5ecret")).status).toBe(200)
    // A number is a user, as in tokens.
    expect(await userOf('Broken {"user":7}')).toMatchObject({ id: "broken:7" })
    expect(service.output()).toMatch(/the policy broken failed/)
    expect(service.output()).not.toMatch(/a secret token/)
  })
})
