// `bellcast listen` as a process, against a scripted HTTP API and pushes of the real `web-push`
// library.
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Option } from "effect"
import { HttpClient, HttpClientError } from "effect/http"
import { TestClock } from "effect/testing"
import { request } from "undici"
import webPush from "web-push"
import { listen } from "#cli/listen/listen.ts"
import { runCli } from "#test/run-cli.ts"
import { startScriptedApi } from "#test/scripted-api.ts"
import { spawnCli } from "#test/spawn-cli.ts"

const vapidDetails = { subject: "mailto:ops@example.com", ...webPush.generateVAPIDKeys() }
const id = "0123456789abcdef".repeat(4)
const registered = { status: 202, body: { code: 202, message: "Accepted" } }
const rootNaming = (webpush: object) => ({
  status: 200,
  body: { project_name: "bellcast", capabilities: { webpush } }
})
const answers = {
  "GET /v1/": rootNaming({ vapid_public_key: vapidDetails.publicKey }),
  "POST /v1/subscriptions": { status: 201, body: { data: { id, last_modified: 1 } } },
  "PUT /v1/channels/news/registration": registered,
  "DELETE /v1/channels/news/registration": registered,
  [`DELETE /v1/subscriptions/${id}`]: { status: 200, body: { data: { id, deleted: true } } }
}

const baseOf = (api: { readonly port: number }) => `http://127.0.0.1:${api.port}/v1`

/** The subscription that the CLI posted, as the service would keep it. */
const postedTo = ({
  calls
}: Awaited<ReturnType<typeof startScriptedApi>>): webPush.PushSubscription =>
  JSON.parse(calls.find(({ call }) => call === "POST /v1/subscriptions")?.body ?? "{}").data

const push = async (
  to: webPush.PushSubscription,
  payload: string,
  change: Record<string, string | undefined> = {}
) => {
  const { headers, body } = webPush.generateRequestDetails(to, payload, { vapidDetails, TTL: 60 })
  const sent = Object.entries({ ...headers, ...change }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]]
  )
  return (await request(to.endpoint, { method: "POST", headers: Object.fromEntries(sent), body }))
    .statusCode
}

describe("bellcast listen", () => {
  it("subscribes, registers, prints decrypted pushes, and cleans up on Ctrl-C", async () => {
    await using api = await startScriptedApi(answers)
    await using cli = await spawnCli(["listen", "news", "--url", baseOf(api), "--user", "ann:pw"])
    await cli.printed(/^listening on channel news, subscription 0123456789ab$/m)
    const subscription = postedTo(api)
    assert.match(subscription.endpoint, /^http:\/\/127\.0\.0\.1:\d+\/push\/[\w-]{43}$/)
    assert.strictEqual(
      await push(subscription, JSON.stringify({ title: "Grüße", published_at: Date.now() - 1000 })),
      201
    )
    assert.strictEqual(await push(subscription, "plain \u001b[2J text"), 201)
    const [, age] = await cli.printed(/Z {2}after (\d+) ms {2}\{"title":"Grüße"/)
    assert.isAtLeast(Number(age), 1000)
    await cli.printed(/Z {2}plain \\u001b\[2J text$/m)
    assert.strictEqual(await push(subscription, ""), 201)
    await cli.printed(/Z {2}\(no payload\)$/m)
    cli.interrupt()
    assert.strictEqual(await cli.exit(), 0)
    assert.deepStrictEqual(
      api.calls.map(({ call }) => call),
      Object.keys(answers)
    )
    assert.deepStrictEqual(
      new Set(api.calls.map(({ authorization }) => authorization)),
      new Set([`Basic ${btoa("ann:pw")}`])
    )
    assert.strictEqual(cli.output.stderr, "")
  })

  it("refuses what a push service would, and says why", async () => {
    await using api = await startScriptedApi(answers)
    await using cli = await spawnCli(["listen", "news"], { BELLCAST_URL: `${baseOf(api)}/` })
    await cli.printed(/^listening/m)
    const subscription = postedTo(api)
    const stranger = { ...vapidDetails, ...webPush.generateVAPIDKeys() }
    const { Authorization } = webPush.generateRequestDetails(subscription, "x", {
      vapidDetails: stranger
    }).headers as {
      Authorization: string
    }
    assert.strictEqual(
      await push({ ...subscription, endpoint: `${subscription.endpoint}x` }, "x"),
      404
    )
    assert.strictEqual(await push(subscription, "x", { TTL: undefined }), 400)
    assert.strictEqual(await push(subscription, "x", { Authorization: undefined }), 401)
    assert.strictEqual(await push(subscription, "x", { Authorization }), 403)
    assert.strictEqual(
      await push({ ...subscription, keys: { ...subscription.keys, auth: "A".repeat(22) } }, "x"),
      400
    )
    assert.strictEqual(await push(subscription, "y".repeat(3994)), 413)
    const get = await fetch(subscription.endpoint)
    assert.deepEqual([get.status, get.headers.get("allow")], [405, "POST"])
    const bare = await fetch(subscription.endpoint, { method: "POST" })
    assert.deepEqual([bare.status, bare.headers.get("www-authenticate")], [401, "vapid"])
    await cli.printed(/refused a push with 413/)
    assert.match(cli.output.stderr, /with 403: the credentials do not correspond to the key/)
    assert.strictEqual(cli.output.stdout.trim().split("\n").length, 1)
  })

  it("prints JSON lines until --count; without a key it takes any signature", async () => {
    await using api = await startScriptedApi({ ...answers, "GET /v1/": rootNaming({}) })
    const flags = ["--url", baseOf(api), "--json", "--count", "2"]
    await using cli = await spawnCli(["listen", "news", ...flags])
    await cli.printed(/"listening"/)
    const subscription = postedTo(api)
    for (const text of ["one", '{"last_modified":1}'])
      assert.strictEqual(await push(subscription, text), 201)
    assert.strictEqual(await cli.exit(), 0)
    const [hello, first, second] = cli.output.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    assert.deepStrictEqual(hello, { event: "listening", channel: "news", subscription: id })
    assert.deepStrictEqual(
      [first.payload, first.elapsedMillis, second.payload],
      ["one", undefined, '{"last_modified":1}']
    )
    assert.strictEqual(second.elapsedMillis, second.receivedAtMillis - 1)
    assert.match(cli.output.stderr, /^bellcast: the service does not name its VAPID key.*\n$/)
    assert.deepStrictEqual(
      api.calls.slice(-2).map(({ call }) => call),
      Object.keys(answers).slice(-2)
    )
  })

  it("prints an error in one line, removes what it made, and exits 1", async () => {
    const body = { code: 403, errno: 121, error_code: "forbidden", message: "not for you" }
    await using api = await startScriptedApi({
      ...answers,
      "PUT /v1/channels/news/registration": { status: 403, body }
    })
    const cli = await runCli(["listen", "news", "--url", baseOf(api)])
    const expected =
      "bellcast: PUT /channels/news/registration was answered 403, forbidden: not for you\n"
    assert.deepStrictEqual(cli, { code: 1, stdout: "", stderr: expected })
    assert.strictEqual(api.calls.at(-1)?.call, `DELETE /v1/subscriptions/${id}`)
  })

  it("says of a server without a root resource that it does not look like Bellcast", async () => {
    await using api = await startScriptedApi({})
    const cli = await runCli(["listen", "news", "--url", baseOf(api)])
    assert.strictEqual(cli.code, 1)
    assert.match(
      cli.stderr,
      new RegExp(
        `^bellcast: ${baseOf(api)} does not look like Bellcast \\(.* 404\\): is --url .*\n$`
      )
    )
    assert.lengthOf(api.calls, 1)
  })

  it("names the defaults of its flags", async () => {
    const cli = await runCli(["listen", "--help"])
    assert.strictEqual(cli.code, 0)
    assert.match(
      cli.stdout,
      /^ *--url .* unset: that of the running one, else http:\/\/127\.0\.0\.1:9999\/v1$/m
    )
    assert.match(cli.stdout, /^ *--user .* unset: a new user$/m)
  })

  it("is a user of its own unless it is told who: one that ends deafens no other", async () => {
    await using api = await startScriptedApi(answers)
    for (const env of [{}, {}, { BELLCAST_USER: "bob:pw" }, { BELLCAST_TOKEN: "t0ken" }]) {
      await using cli = await spawnCli(["listen", "news", "--url", baseOf(api)], env)
      await cli.printed(/^listening/m)
    }
    const sent = [...new Set(api.calls.map(({ authorization }) => authorization ?? ""))]
    assert.strictEqual(sent.pop(), "Bearer t0ken")
    const users = sent.map((authorization) => atob(authorization.slice("Basic ".length)))
    assert.lengthOf(users, 3)
    for (const user of users.slice(0, 2)) assert.match(user, /^listener-[0-9a-f]{8}:secret$/)
    assert.strictEqual(users[2], "bob:pw")
  })

  it("waits for a service that starts after it, and ends when its reader leaves", async () => {
    const taken = await startScriptedApi({
      "GET /v1/": { status: 503, body: { code: 503, errno: 201, error: "Service Unavailable" } }
    })
    await using cli = await spawnCli(["listen", "news", "--url", baseOf(taken)])
    await taken.asked
    await taken[Symbol.asyncDispose]()
    await using api = await startScriptedApi(answers, taken.port)
    await cli.printed(/^listening/m)
    cli.leave()
    assert.strictEqual(await push(postedTo(api), "unread"), 201)
    assert.strictEqual(await cli.exit(), 0)
    assert.strictEqual(cli.output.stderr, "")
    assert.deepStrictEqual(
      api.calls.slice(-2).map(({ call }) => call),
      Object.keys(answers).slice(-2)
    )
  })

  it.effect("gives up after 10 s without an answer and names the way to start the service", () =>
    Effect.gen(function* () {
      let attempts = 0
      const nobody = HttpClient.make((request) => {
        attempts += 1
        return Effect.fail(
          new HttpClientError.HttpClientError({
            reason: new HttpClientError.TransportError({ request })
          })
        )
      })
      const options = {
        channel: "news",
        url: "http://127.0.0.1:9/v1",
        authorization: "Bearer t",
        count: Option.none(),
        json: false
      }
      const listening = yield* listen(options).pipe(
        Effect.provideService(HttpClient.HttpClient, nobody),
        Effect.exit,
        Effect.forkChild
      )
      yield* TestClock.adjust("9 seconds")
      assert.isUndefined(listening.pollUnsafe())
      assert.isAbove(attempts, 30)
      yield* TestClock.adjust("2 seconds")
      const exit = yield* Fiber.join(listening)
      assert.match(
        String(Exit.isFailure(exit) && exit.cause),
        /no answer from http:\/\/127\.0\.0\.1:9\/v1.*make run.*--url or BELLCAST_URL/
      )
    })
  )
})
