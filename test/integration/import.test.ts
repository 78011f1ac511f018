// Subscriptions of another service are imported with its VAPID key and get pushes. Each line is
// checked, and a run may be repeated or killed at any moment.
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { Effect, Layer } from "effect"
import { assert, describe, it } from "vitest"
import webpush from "web-push"
import type { Checked } from "#cli/moving/line.ts"
import { storeOne } from "#cli/moving/store.ts"
import { askErasure } from "#cli/nats/erase.ts"
import { endpointHash } from "#domain/subscription/owners.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { fileOf } from "../support/bundle.ts"
import { call, channelsOf, finished, publish, registrationsSeen, until } from "../support/client.ts"
import { messagesOf } from "../support/erased.ts"
import {
  formerBrowser,
  formerPair,
  importAll,
  importLines,
  settingsOn,
  useImports
} from "../support/imports.ts"
import { runCli } from "../support/run-cli.ts"
import { secretEnvironment } from "../support/service.ts"
import { spawnCli } from "../support/spawn-cli.ts"
import type { SubscriptionJson, UserAgent } from "../support/user-agent.ts"
import { idOf, tokenOf } from "../support/users.ts"

const shared = useImports()

const browser = () => formerBrowser(shared.push)
const subscriptions = (count: number) => Array.from({ length: count }, () => browser().subscription)
const rowOf = ({ endpoint, keys }: SubscriptionJson, more: object = {}) => ({
  identifier: endpoint,
  web_auth: keys.auth,
  web_p256: keys.p256dh,
  external_user_id: "",
  invalid_identifier: "f",
  ...more
})
const imports = (lines: ReadonlyArray<unknown>, ...args: ReadonlyArray<string>) =>
  importLines(shared.nats.url, lines, ...args)
const inLog = async () => (await shared.admin.jsm.streams.info("BELLCAST_LOG")).state.last_seq
const sent = async (channel: string) =>
  finished(shared.service.url, channel, await publish(shared.service.url, channel, { n: 1 }))
const textsOf = ({ received }: UserAgent) => received.map(({ text }) => text)

describe("an import", { timeout: 60_000 }, () => {
  it("stores subscriptions that get pushes signed with the key they were made with", async () => {
    const { nats, push, service } = shared
    const agents = [browser(), browser(), browser()]
    const [plain, row, named] = agents.map(({ subscription }) => subscription)
    const lines = [
      { ...plain, id: 17, last_modified: "yesterday" },
      rowOf(row!, { language: "de", notification_types: "1", channels: ["stored too"] }),
      { ...named, user: idOf("named"), channels: ["stored too"] }
    ]
    await importAll(nats.url, lines, "--channel", "stored")
    assert.deepInclude(await sent("stored"), { accepted: 3, delivered: 3 })
    assert.equal(await registrationsSeen(service.url, "stored too", "named"), 2)
    assert.deepEqual(agents.map(textsOf), [['{"n":1}'], ['{"n":1}'], ['{"n":1}']])
    assert.deepEqual(push.faults, [])
    assert.sameMembers([...(await channelsOf(service.url, "named"))], ["stored", "stored too"])
    const { body } = await call(service.url, "GET", "/subscriptions", "named")
    assert.deepInclude(body.data[0], { ...named, vapid_public_key: formerPair.publicKey })
  })

  it("reads OneSignal's CSV, made lines of by the command of the document", async (context) => {
    const document = readFileSync(
      new URL("../../src/cli/moving/README.md", import.meta.url),
      "utf8"
    )
    const [, script = ""] = /python3 -c '([^']+)'/.exec(document.replaceAll(/^ {3}/gm, "")) ?? []
    const [one, other] = subscriptions(2)
    const rows = [rowOf(one!, { tags: '{"a": "b, c"}' }), rowOf(other!, { web_auth: "" })]
    const cell = (text: string) => `"${text.replaceAll('"', '""')}"`
    const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))]
    const csv = [columns, ...rows.map((row) => columns.map((name) => Object(row)[name] ?? ""))]
    const input = csv.map((cells) => cells.map(cell).join(",")).join("\n")
    const { error, stdout } = spawnSync("python3", ["-c", script], { input, encoding: "utf8" })
    if (error !== undefined) return context.skip("python3 is missing")
    const lines = stdout.trimEnd().split("\n")
    const { stdout: said } = await imports(lines)
    assert.equal(said, "1 of 2 lines were stored\n1 lack web_auth or web_p256\n")
  })

  it("says of each refused line its number and the reason, never endpoint or keys", async () => {
    const [a, b, c, d, e, f, good] = subscriptions(7) as [SubscriptionJson, ...SubscriptionJson[]]
    const short = c!.keys.auth.slice(0, 20)
    const lines: ReadonlyArray<readonly [unknown, string | undefined]> = [
      ["{nonsense", "Expected a JSON object"],
      [[good], "Expected a JSON object"],
      [{ keys: a.keys }, "endpoint: Required"],
      [{ endpoint: "x".repeat(70_000) }, "too long for a line"],
      ["", undefined],
      [`{"user":738529527931269425,"endpoint":"x"}`, "the number 738529527931269425 would become"],
      [{ ...b, endpoint: `${b!.endpoint}#secret` }, "endpoint: Must not have a fragment"],
      [{ ...c, keys: { ...c!.keys, auth: short } }, "keys.auth: Must be 16 bytes in base64url"],
      [{ ...d, vapid_public_key: webpush.generateVAPIDKeys().publicKey }, "vapid_public_key: Must"],
      [{ ...e, user: "nonsense" }, "user: Expected <policy>:<id>"],
      [{ ...e, user: "import:1" }, "user: there is no policy import"],
      [{ ...f, channels: "news" }, "channels: Expected an array"],
      [rowOf(f!, { identifier: "a1b2", web_auth: "" }), undefined],
      [rowOf(f!, { invalid_identifier: "t" }), undefined],
      [rowOf(f!, { notification_types: "-2" }), undefined],
      [good, undefined]
    ]
    const { code, stderr, stdout } = await imports(lines.map(([line]) => line))
    assert.equal(code, 1)
    const [stored, ...others] = stdout.trimEnd().split("\n")
    assert.equal(stored, "1 of 15 lines were stored")
    assert.deepEqual(others, ["3 are no Web Push, or unsubscribed", "11 were refused"])
    for (const [i, [, reason]] of lines.entries()) {
      const line = `bellcast: line ${i + 1}: `
      if (reason === undefined) assert.notInclude(stderr, line)
      else assert.include(stderr, line + reason)
    }
    const secrets = [a, b!, c!, d!, e!, f!].flatMap(({ endpoint, keys }) => [
      new URL(endpoint).pathname,
      ...Object.values(keys)
    ])
    for (const secret of [...secrets, short]) assert.notInclude(stderr + stdout, secret)
  })

  it("adds nothing when it is repeated", async () => {
    const lines = subscriptions(20)
    await importAll(shared.nats.url, lines, "--channel", "twice")
    const before = await inLog()
    const { stdout } = await imports([...lines, lines[0]], "--channel", "twice")
    assert.equal(stdout, "0 of 21 lines were stored\n21 were there already\n")
    assert.equal(await inLog(), before)
  })

  it("does not bring back a user who was erased", async () => {
    const [one, other] = subscriptions(2)
    const lines = [
      { ...one, user: idOf("leaves") },
      { ...other, user: idOf("remains") }
    ]
    await importAll(shared.nats.url, lines, "--channel", "left")
    const args = ["user", "erase", idOf("leaves"), "--nats", shared.nats.url]
    assert.equal((await runCli(args, secretEnvironment)).code, 0)
    const before = await inLog()
    const { stdout } = await imports(lines, "--channel", "left")
    assert.match(stdout, /^0 of 2 lines were stored\n1 were there already\n1 were removed/)
    assert.equal(await inLog(), before)
  })

  it("does not bring back what an erased user had who came back with another browser", async () => {
    const [former, later] = [browser().subscription, shared.push.subscribe().subscription]
    const lines = [{ ...former, user: idOf("returns") }]
    await importAll(shared.nats.url, lines)
    const args = ["user", "erase", idOf("returns"), "--nats", shared.nats.url]
    assert.equal((await runCli(args, secretEnvironment)).code, 0)
    const { url } = shared.service
    const stored = await call(url, "POST", "/subscriptions", "returns", { data: later })
    assert.equal(stored.status, 201)
    const before = await inLog()
    const { stdout } = await imports(lines, "--channel", "returned")
    assert.match(stdout, /^0 of 1 lines were stored\n1 were removed/)
    assert.equal(await inLog(), before)
    const { data } = (await call(url, "GET", "/subscriptions", "returns")).body
    assert.deepEqual(
      data.map(({ endpoint }: SubscriptionJson) => endpoint),
      [later.endpoint]
    )
  })

  it("leaves nothing of a user who is erased while the line is stored", async () => {
    const { admin, nats } = shared
    const user = { id: idOf("meanwhile"), user: tokenOf("meanwhile") }
    const data = { ...browser().subscription }
    const line: Checked = {
      ...{ id: endpointHash(data.endpoint), data, vapidKey: formerPair.publicKey, user },
      channels: [channelToken("meanwhile")]
    }
    const isErased = () =>
      admin.jsm.streams.getMessage("BELLCAST_LOG", { last_by_subj: subjects.erased(user.user) })
    let isAsked = false
    const erasing = Layer.effect(
      EventLog,
      Effect.map(EventLog, (own) =>
        EventLog.of({
          ...own,
          append: ((stream, message) => {
            if (message.type !== "registration.put" || isAsked) return own.append(stream, message)
            isAsked = true
            return askErasure(user.user).pipe(
              Effect.provideService(EventLog, own),
              Effect.andThen(Effect.promise(() => until(isErased, (found) => found !== null))),
              Effect.andThen(own.append(stream, message))
            )
          }) as typeof own.append
        })
      )
    ).pipe(Layer.provideMerge(natsLayer({ url: nats.url, name: "test" })))
    const most = { subscriptionsPerUserMax: 9, subscriptionsPerUserPerHostMax: 9 }
    const limits = { ...most, registrationsPerUserMax: 9 }
    const stored = storeOne(line, limits, false).pipe(Effect.provide(erasing))
    assert.equal(await Effect.runPromise(stored), "ended")
    await until(
      () => messagesOf(admin, [user.id, data.endpoint]),
      (left) => left.length === 0
    )
  })

  it("goes on where a killed run stopped", async () => {
    const lines = subscriptions(400)
    const file = shared.files.of(lines)
    const args = ["import", file, "--vapid-public-key", formerPair.publicKey, "--channel", "killed"]
    const before = await inLog()
    {
      await using _killed = await spawnCli(args, settingsOn(shared.nats.url))
      await until(inLog, (seq) => seq > before + 200, 20_000)
    }
    const { code, stdout } = await runCli(args, settingsOn(shared.nats.url))
    assert.equal(code, 0)
    const [, stored, present] =
      /^(\d+) of 400 lines were stored\n(\d+) were there already\n$/.exec(stdout) ?? []
    assert.equal(Number(stored) + Number(present), 400)
    assert.isAbove(Number(present), 0)
    assert.deepInclude(await sent("killed"), { accepted: 400, delivered: 400 })
    await call(shared.service.url, "PUT", "/channels/killed/registration", "looks")
    assert.equal(await registrationsSeen(shared.service.url, "killed", "looks"), 401)
  })

  it("stores nothing in a dry run, and counts the same", async () => {
    const lines = [...subscriptions(2), "nonsense"]
    const before = await inLog()
    const { stdout } = await imports(lines, "--channel", "dry", "--dry-run")
    assert.equal(stdout, "2 of 3 lines would be stored\n1 were refused\n")
    assert.equal(await inLog(), before)
    assert.match((await imports(lines)).stdout, /^2 of 3 lines were stored\n/)
  })

  it("reads standard input", async () => {
    const [one] = subscriptions(1)
    const args = ["import", "-", "--vapid-public-key", formerPair.publicKey]
    const env = { ...process.env, ...settingsOn(shared.nats.url) }
    const input = `\uFEFF${JSON.stringify(one)}\r\n`
    const options = { env, input, encoding: "utf8" } as const
    const { stdout } = spawnSync(process.execPath, [await fileOf("cli"), ...args], options)
    assert.equal(stdout, "1 of 1 lines were stored\n")
  })

  it("is refused with a key that nobody can sign with, and says where it belongs", async () => {
    const unknown = webpush.generateVAPIDKeys()
    const file = shared.files.of(subscriptions(1))
    const args = ["import", file, "--vapid-public-key", unknown.publicKey]
    const before = await inLog()
    const { code, stderr } = await runCli(args, settingsOn(shared.nats.url))
    assert.equal(code, 1)
    assert.match(stderr, /cannot sign with this key.*BELLCAST_VAPID_FORMER_KEYS/)
    assert.match(stderr, /no private key enters NATS/)
    const pair = `${unknown.publicKey}:${unknown.privateKey}`
    const env = { ...settingsOn(shared.nats.url), BELLCAST_VAPID_FORMER_KEYS: pair }
    assert.match((await runCli(args, env)).stderr, /no gateway has started with this key yet/)
    const retired = { ...env, BELLCAST_VAPID_FORMER_KEYS: `${unknown.publicKey}:retired` }
    assert.match((await runCli(args, retired)).stderr, /cannot sign with this key/)
    const { stderr: unnamed } = await runCli(["import", file], settingsOn(shared.nats.url))
    assert.include(unnamed, "line 1: vapid_public_key: name it in the line")
    assert.equal(await inLog(), before)
  })

  it("takes nothing from a user, not even at the same moment", async () => {
    const agent = browser()
    const data = { ...agent.subscription, vapid_public_key: formerPair.publicKey }
    const { status } = await call(shared.service.url, "POST", "/subscriptions", "ann", { data })
    assert.equal(status, 201)
    const held = "0 of 1 lines were stored\n1 belong to another user\n"
    assert.equal((await imports([agent.subscription], "--channel", "held")).stdout, held)
    // As if the import had looked before the user came.
    const id = endpointHash(data.endpoint)
    const body = { user: idOf("bob"), id, data, imported: true, lastModified: 1 } as const
    const { seq } = await Effect.runPromise(
      Effect.flatMap(EventLog, (log) =>
        log.append("log", {
          subject: subjects.subscription(tokenOf("bob")),
          type: "subscription.put",
          body
        })
      ).pipe(Effect.provide(natsLayer({ url: shared.nats.url, name: "test" })))
    )
    const rejection = { last_by_subj: subjects.rejected(seq) }
    await until(
      () => shared.admin.jsm.streams.getMessage("BELLCAST_LOG", rejection),
      (message) => message !== null
    )
    assert.lengthOf((await call(shared.service.url, "GET", "/subscriptions", "ann")).body.data, 1)
    assert.lengthOf((await call(shared.service.url, "GET", "/subscriptions", "bob")).body.data, 0)
  })

  it("gives a user no more subscriptions than allowed, whatever comes at once", async () => {
    const { files, nats, service } = shared
    const lines = subscriptions(30).map((each) => ({ ...each, user: idOf("many") }))
    const file = files.of(lines)
    const args = ["import", file, "--vapid-public-key", formerPair.publicKey]
    const env = { ...settingsOn(nats.url), BELLCAST_SUBSCRIPTIONS_PER_USER_PER_HOST_MAX: "25" }
    const { stdout } = await runCli(args, env)
    const full = "5 are of users who have as much as they may"
    assert.equal(stdout, `25 of 30 lines were stored\n${full}\n`)
    assert.lengthOf((await call(service.url, "GET", "/subscriptions", "many")).body.data, 25)
  })
})
