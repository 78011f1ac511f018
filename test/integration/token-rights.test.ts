// Rights of tokens, one by one: to send to channels and to users, to see and change broadcasts, and
// those of operators.
import { jetstream } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { assert, it } from "vitest"
import { freshToken, hashOfToken } from "#identity/policies/token.ts"
import { broadcastPath, changesOfData, resultOf } from "../support/broadcast-states.ts"
import { call, publishAt, until } from "../support/client.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { createToken, runCli } from "../support/run-cli.ts"
import { storedText } from "../support/stored-text.ts"
import { inHours } from "../support/times.ts"
import { useService } from "../support/use-service.ts"
import { idOf } from "../support/users.ts"

const env = {
  BELLCAST_AUTH_POLICIES: "basicauth token",
  BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher")
}
/** Without the planner no broadcast ends by itself. */
const shared = useService({ roles: "gateway,projection", env })

/** The header of a new token. */
const make = async (name: string, ...args: ReadonlyArray<string>) => {
  const { token } = await createToken(shared.nats.url, name, ...args)
  return { authorization: `Bearer ${token}` }
}

const at = inHours(1)
const changes = [{ at: inHours(2) }, { rate: 9 }, ...changesOfData]
const users = [idOf("anna")]

const patch = (id: string, data: object, token: Record<string, string>) =>
  call(shared.service.url, "PATCH", broadcastPath(id), undefined, { data }, token)

it("each channel needs a right of a token, and users do, to send, see and cancel", {
  timeout: 60_000
}, async () => {
  const { url } = shared.service
  const tokens = [
    await make("channels", "--channel", "news*"),
    await make("users", "--users"),
    await make("both", "--users", "--channel", "news")
  ]
  const audiences: ReadonlyArray<readonly [to: object, allowed: ReadonlyArray<boolean>]> = [
    [{ channels: ["news"] }, [true, false, true]],
    [{ channels: ["news", "newsroom"] }, [true, false, false]],
    [{ channels: ["news", "other"] }, [false, false, false]],
    [{ users }, [false, true, true]],
    [{ channels: ["news"], users }, [false, false, true]],
    [{ channels: ["news"], except_users: users }, [false, false, true]]
  ]
  for (const [to, allowed] of audiences) {
    const located: Array<string> = []
    for (const [i, token] of tokens.entries()) {
      const about = `${JSON.stringify(to)} by ${i}`
      for (const dry_run of [true, false]) {
        const body = { data: { n: 1 }, to, dry_run }
        const sent = await call(url, "POST", "/broadcasts", undefined, body, token)
        const { headers, status } = sent
        assert.equal(status, allowed[i] ? (dry_run ? 200 : 202) : 403, about)
        const location = headers.get("location")
        if (location !== null) located.push(location.slice(url.length))
      }
    }
    // A broadcast is shown to those who might have sent it: here the same, or its publisher.
    for (const path of located)
      for (const [i, token] of tokens.entries()) {
        const { status } = await call(url, "GET", path, undefined, undefined, token)
        const about = `${path} ${JSON.stringify(to)} by ${i}`
        assert.equal(status, allowed[i] ? 200 : 404, about)
        const body = { data: { state: "cancelled" } }
        const patched = await call(url, "PATCH", path, undefined, body, token)
        assert.equal(patched.status, status, about)
      }
  }
})

it("a token publishes a draft of its own by its rights, and sees those of others without users", {
  timeout: 60_000
}, async () => {
  const { url } = shared.service
  const tokens = [
    await make("draft-channels", "--channel", "news*"),
    await make("draft-users", "--users"),
    await make("draft-both", "--users", "--channel", "news")
  ]
  const audiences: ReadonlyArray<
    readonly [to: object, sends: ReadonlyArray<boolean>, seen: ReadonlyArray<boolean>]
  > = [
    [{ channels: ["news"] }, [true, false, true], [true, false, true]],
    [{ channels: ["news", "other"] }, [false, false, false], [false, false, false]],
    [{ channels: ["news"], users }, [false, false, true], [false, false, false]],
    [{ users }, [false, true, true], [false, false, false]]
  ]
  for (const [n, [to, sends, seen]] of audiences.entries())
    for (const [i, token] of tokens.entries()) {
      const path = `/drafts/of-${n}-${i}`
      const body = { data: { data: { n }, to } }
      const put = await call(url, "PUT", path, undefined, body, token)
      assert.equal(put.status, 201)
      for (const [other, each] of tokens.entries()) {
        const { status } = await call(url, "GET", path, undefined, undefined, each)
        assert.equal(status, other === i || seen[other] ? 200 : 404, `${path} by ${other}`)
      }
      const reviewed = { ...token, "if-match": put.headers.get("etag")! }
      const sent = await call(url, "POST", `${path}/publish`, undefined, undefined, reviewed)
      assert.equal(sent.status, sends[i] ? 202 : 403, path)
    }
})

it("the token of an operator sees and stops the broadcasts of others, and publishes nowhere", {
  timeout: 60_000
}, async () => {
  const { nats, service } = shared
  const send = (token: string, method: string, path: string, body?: unknown) =>
    call(service.url, method, path, undefined, body, { authorization: `Bearer ${token}` })

  const { token: shop } = await createToken(nats.url, "shop", "--channel", "news")
  const { said, token: desk } = await createToken(nats.url, "desk", "--operator")
  assert.match(said, /has this token may act as an operator until/)
  const posted = await send(shop, "POST", "/channels/news", { data: { n: 1 } })
  const path = posted.headers.get("location")!.slice(service.url.length)
  const byId = path.replace(/\/channels\/[^/]+/, "")
  for (const each of [path, byId, "/broadcasts", "/channels/news/broadcasts"])
    assert.deepEqual([each, (await send(desk, "GET", each)).status], [each, 200])
  for (const each of ["/channels/news", "/channels/news/members", "/registrations"])
    assert.deepEqual([each, (await send(desk, "GET", each)).status], [each, 403])
  assert.equal((await send(desk, "POST", "/channels/news", {})).status, 403)
  const patched = await send(desk, "PATCH", byId, { data: { state: "cancelled" } })
  assert.equal(patched.status, 200)
  assert.match(await storedText(nats.url), /evt\.state\.\d+ .*"by":"token:desk"/)
  const { user } = (await send(desk, "GET", "/")).body
  assert.deepInclude(user, { id: "token:desk", operator: true })
  const { stdout } = await runCli(["token", "list", "--json", "--nats", nats.url])
  assert.match(stdout, /"name":"desk","channels":\[\],"users":false,"operator":true/)
})

it("a token needs each right that the broadcast needs", { timeout: 60_000 }, async () => {
  const { service } = shared
  const tokens = [
    await make("later-channels", "--channel", "news"),
    await make("later-users", "--users"),
    await make("later-both", "--users", "--channel", "news"),
    await make("later-operator", "--operator")
  ]
  const hidden = [404, 110]
  const refused = [403, 121]
  const audiences: ReadonlyArray<readonly [to: object, expected: ReadonlyArray<unknown>]> = [
    [{ channels: ["news"] }, [200, hidden, 200, refused]],
    [{ channels: ["news", "other"] }, [hidden, hidden, hidden, refused]],
    [{ users }, [hidden, 200, 200, refused]],
    [{ channels: ["news"], users }, [hidden, hidden, 200, refused]],
    [{ channels: ["news"], except_users: users }, [hidden, hidden, 200, refused]]
  ]
  for (const [to, expected] of audiences) {
    const id = await publishAt(service.url, "/broadcasts", { data: { n: 1 }, at, to })
    for (const data of changes)
      for (const [i, token] of tokens.entries()) {
        const result = resultOf(await patch(id, data, token))
        const isOfData = changesOfData.includes(data)
        const isOperators = i === 3 && !isOfData
        // A letter is changed by nobody who may not read it.
        const isLetter = "users" in to && expected[i] === 200 && isOfData
        const wanted = isOperators ? 200 : isLetter ? refused : expected[i]
        assert.deepEqual(result, wanted, `${JSON.stringify([to, data])} by ${i}`)
      }
  }
})

it("a token works once it is stored, although it was refused just before", async () => {
  const { nats, service } = shared
  await using admin = await connectAdmin(nats.url)
  const token = freshToken()
  const authorization = `Bearer ${token}`
  const publish = async () =>
    (await fetch(`${service.url}/channels/news`, { method: "POST", headers: { authorization } }))
      .status
  assert.equal(await publish(), 401)
  const head = headers()
  head.set("Bellcast-Type", "token.put/1")
  const body = JSON.stringify({ hash: hashOfToken(token), channels: ["news"], at: Date.now() })
  await jetstream(admin.nc).publish("bellcast.cmd.token.early", body, { headers: head })
  // Tokens of other policies are not verified again for 10 s.
  await until(publish, (status) => status === 202, 5_000)
})
