// `bellcast publish`: a gateway decides, so a publisher of the command line has the rights that it
// was given, and the checks of every other publisher.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { join as pathOf } from "node:path"
import { headers } from "@nats-io/transport-node"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { fileOf } from "../support/bundle.ts"
import { finishedAt, join, until } from "../support/client.ts"
import { folderWith } from "../support/folder.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { type Service, settingsFile, startService } from "../support/service.ts"
import { idOf, tokenOf } from "../support/users.ts"

const env = {
  BELLCAST_CHANNEL_WRITE_PRINCIPALS: idOf("publisher"),
  BELLCAST_USER_WRITE_PRINCIPALS: "nats:desk",
  BELLCAST_OPERATOR_PRINCIPALS: idOf("operator")
}

describe("bellcast publish", { timeout: 120_000 }, () => {
  let nats: TestNats
  let push: PushService
  let service: Service
  beforeAll(async () => {
    nats = await startNats()
    push = await startPushService()
    service = await startService({ natsUrl: nats.url, env })
    await join([service.url], "news", [
      push.subscribe().subscription,
      push.subscribe().subscription
    ])
    for (const source of ["operator", "desk"])
      assert.equal((await run("permissions", "grant", "news", `nats:${source}`)).code, 0)
  })
  afterAll(async () => {
    for (const each of [service, push, nats]) await each?.[Symbol.asyncDispose]()
  })

  const run = (...args: ReadonlyArray<string>) => runCli([...args, "--nats", nats.url])
  const publish = async (...args: ReadonlyArray<string>) => {
    const { code, stderr, stdout } = await run("publish", ...args)
    assert.deepEqual([code, stderr], [0, ""])
    return stdout
  }
  const idIn = (line: string): string =>
    /^broadcast (\d+) is accepted(, and starts .*)?\n$/.exec(line)![1]!
  const done = (id: string) => finishedAt(service.url, `/broadcasts/${id}`, "operator")

  it("publishes on a channel, where the channel lists it", async () => {
    const id = idIn(
      await publish('{"n":1}', "--channel", "news", "--ttl", "60", "--urgency", "low")
    )
    const { accepted_at, expires_at, ...counts } = await done(id)
    assert.equal(expires_at - accepted_at, 60_000)
    assert.deepInclude(counts, { publisher: "nats:operator", delivered: 2, accepted: 2 })
    const { received } = push.agents[0]!
    assert.equal(received.at(-1)!.headers["urgency"], "low")
    const listed = await until(
      () => run("broadcast", "list", "--channel", "news", "--json"),
      ({ stdout }) => stdout !== ""
    )
    assert.equal(JSON.parse(listed.stdout).id, id)
  })

  it("publishes to users with the right to, from a file", async () => {
    const file = pathOf(await folderWith({ "data.json": '{"n":2}' }), "data.json")
    const to = ["--user", idOf("user0"), "--channel", "news", "--except-user", idOf("user1")]
    const id = idIn(await publish("--file", file, ...to, "--source", "desk"))
    assert.deepInclude(await done(id), { publisher: "nats:desk", accepted: 1, delivered: 1 })
    const refused = await run("publish", "--file", file, ...to)
    assert.deepEqual([refused.code, refused.stdout], [1, ""])
    const [said, ...hints] = refused.stderr.trim().split("\n")
    assert.match(said!, /\(403, forbidden\)/)
    assert.deepEqual(hints.slice(1), [
      "  bellcast permissions grant news nats:operator",
      "  the setting BELLCAST_USER_WRITE_PRINCIPALS, which must name nats:operator"
    ])
  })

  it("publishes a test to users alone, which operators see in the list", async () => {
    const test = ['{"n":0}', "--test", "--source", "desk"]
    const id = idIn(await publish(...test, "--user", idOf("user0")))
    assert.deepInclude(await done(id), { test: true, delivered: 1 })
    const listed = await until(
      () => run("broadcast", "list"),
      ({ stdout }) => stdout.includes("test, 1 user")
    )
    assert.match(listed.stdout, new RegExp(`^ *${id} `, "m"))
    const refused = await run("publish", ...test, "--channel", "news")
    assert.match(refused.stderr, /a test goes to users alone: --user USER, without --channel/)
  })

  it("reads the data from standard input", async () => {
    const args = ["publish", "--channel", "news", "--json", "--nats", nats.url]
    const child = spawn(process.execPath, [await fileOf("cli"), ...args], {
      env: { ...process.env, ...settingsFile(undefined) },
      stdio: ["pipe", "pipe", "inherit"]
    })
    let stdout = ""
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      stdout += chunk
    })
    child.stdin.end('{"n":3}')
    assert.deepEqual(await once(child, "close"), [0, null])
    const { id, ...rest } = JSON.parse(stdout)
    assert.deepEqual(rest, { code: 202, message: "Accepted", warnings: [] })
    assert.deepInclude(await done(id), { delivered: 2 })
  })

  it("takes a key, and counts without sending", async () => {
    const once = ['{"n":4}', "--channel", "news", "--key", "invoice-4"]
    assert.equal(await publish(...once), await publish(...once))
    const other = await run("publish", '{"n":5}', "--channel", "news", "--key", "invoice-4")
    assert.match(other.stderr, /\(400, invalid-request\): Idempotency-Key .* another broadcast/)
    const dry = await publish('{"n":6}', "--channel", "news", "--dry-run")
    assert.equal(dry, "would go to 2 browsers of 2 people\n")
  })

  it("names its key where a gateway may have accepted it without saying so", async () => {
    await using other = await startNats()
    await using admin = await connectAdmin(other.url)
    const keys: Array<string> = []
    const busy = { headers: headers() }
    busy.headers.set("Nats-Service-Error-Code", "503")
    admin.nc.subscribe("bellcast.api.operator.>", {
      callback: (_, msg) => {
        keys.push(msg.headers?.get("Idempotency-Key") ?? "")
        if (keys.length !== 3) msg.respond("{}", busy)
      }
    })
    const again = async (...args: ReadonlyArray<string>) =>
      (await runCli(["publish", "{}", "--channel", "x", ...args, "--nats", other.url])).stderr
    assert.match(await again(), / all the same\. Repeat it .* --key [0-9a-f-]{36}: then nobody /)
    assert.match(await again("--key", "in voice"), /refused it \(503, .*\n.* --key 'in voice': /)
    const [first, second] = keys
    assert.match(first!, /^[0-9a-f-]{36}$/)
    assert.equal(second, "in voice")
    const silent = await again()
    assert.include(silent, `there is no response: the broadcast may be accepted`)
    assert.include(silent, `--key ${keys[2]}:`)
    assert.notInclude(await again("--dry-run"), "--key")
    assert.equal(keys[3], "")
  })

  it("publishes for later, with what limits the broadcast", async () => {
    const at = new Date(Date.now() + 3_600_000).toISOString()
    const limits = ["--at", at, "--rate", "50", "--pause-when", "failed_share=0.2"]
    const name = ["--name", "Für später"]
    const said = await publish('{"title":"Later"}', "--channel", "news", ...limits, ...name)
    const id = idIn(said)
    assert.include(said, `, and starts at ${at}\n`)
    const shown = JSON.parse((await run("broadcast", "show", id, "--json")).stdout)
    assert.deepInclude(shown, {
      ...{ state: "scheduled", at, rate: 50, pause_when: { failed_share: 0.2 } },
      ...{ name: "Für später", title: "Later", data: { title: "Later" } }
    })
    const text = (await run("broadcast", "show", id)).stdout
    assert.match(text, /^data +\{"title":"Later"\}$/m)
    const listed = await until(
      () => run("broadcast", "list"),
      ({ stdout }) => stdout.includes("scheduled")
    )
    assert.match(listed.stdout, / TITLE +NAME +TO +PUBLISHER\n.* Later +Für später +news +nats:/)
    const audit = ["audit", id, "--user", tokenOf("user0")]
    const planned = `not started yet, planned for ${at}`
    const row = new RegExp(`^ *${id} +- +news +scheduled +- +none +- +${planned} `, "m")
    assert.match((await run(...audit)).stdout, row)
    const [found] = (await run(...audit, "--json")).stdout.split("\n")
    assert.notProperty(JSON.parse(found!), "started_at")
    assert.equal((await run("broadcast", "cancel", id)).code, 0)
    const ended = new RegExp(`^ *${id} +- +news +cancelled .* cancelled before its start `, "m")
    assert.match((await run(...audit)).stdout, ended)
    const delayed = await publish('{"n":8}', "--channel", "news", "--delay", "3600")
    assert.include(
      delayed,
      ", and starts 3600 s later unless `bellcast broadcast cancel` is faster"
    )
    assert.equal((await run("broadcast", "cancel", idIn(delayed))).code, 0)
  })

  it("warns of a channel that nobody is registered to", async () => {
    assert.equal((await run("permissions", "grant", "newz", "nats:operator")).code, 0)
    const { code, stderr, stdout } = await run("publish", "{}", "--channel", "newz")
    assert.deepEqual([code, stderr], [0, "bellcast: Nobody is registered to the channel newz\n"])
    idIn(stdout)
    const dry = await run("publish", "{}", "--channel", "newz", "--dry-run")
    const counted = "would go to 0 browsers of 0 people\n"
    assert.deepEqual(dry, { code: 0, stderr, stdout: counted })
  })

  it("reads a time without an offset in the zone of the machine, and prints it", async () => {
    const before = process.env["TZ"]
    try {
      for (const [zone, offset] of [
        ["Asia/Tokyo", "+09:00"],
        ["UTC", "Z"]
      ] as const) {
        process.env["TZ"] = zone
        const day = new Date(Date.now() + 3 * 86_400_000).toISOString().slice(0, 10)
        const at = new Date(`${day}T09:00:00${offset}`).toISOString()
        const text = `${day}T09:00`
        const { stderr, stdout } = await run("publish", "{}", "--channel", "news", "--at", text)
        assert.equal(stderr, `bellcast: --at ${text} is ${at}: ${text} in ${zone}\n`)
        assert.include(stdout, `, and starts at ${at}\n`)
        const shown = await run("broadcast", "show", idIn(stdout), "--json")
        assert.deepInclude(JSON.parse(shown.stdout), { state: "scheduled", at })
        assert.equal((await run("broadcast", "cancel", idIn(stdout))).code, 0)
      }
      // At midnight the time that was a minute ago is one of the day before.
      const over = new Date(Date.now() - 60_000).toISOString().slice(11, 16)
      const refused = await run("publish", "{}", "--channel", "news", "--at", over)
      if (over !== "23:59") assert.match(refused.stderr, /a time to come: .* of today is over/)
    } finally {
      if (before === undefined) delete process.env["TZ"]
      else process.env["TZ"] = before
    }
  })

  it("names what is missing or wrong", async () => {
    const refused = async (expected: RegExp, ...args: ReadonlyArray<string>) => {
      const { code, stderr, stdout } = await run("publish", ...args)
      assert.deepEqual([code, stdout], [1, ""])
      assert.match(stderr, expected)
    }
    await refused(/name the recipients/, "{}")
    await refused(/the data is no JSON object/, "[]", "--channel", "news")
    await refused(/the data is no JSON object/, "hello", "--channel", "news")
    const long = '{"n":738529527931269425}'
    await refused(/sent as it is: .*425 would become .*400: write it as a/, long, "--channel", "x")
    const twice = ["--channel", "x", "--data-by-locale", '{"de":{"a":1,"a":2}}']
    await refused(/--data-by-locale cannot be sent as it is: the name "a" stands/, "{}", ...twice)
    const large = pathOf(
      await folderWith({ "d.json": `{"n":"${"a".repeat(2_000_000)}"}` }),
      "d.json"
    )
    const toOne = ["--file", large, "--channel", "news"]
    await refused(/has 2000034 bytes of JSON, a gateway takes 16384 .* push 3993/, ...toOne)
    await refused(/a gateway takes 262144 at most/, ...toOne, "--user", idOf("user0"))
    await refused(/--file, not both/, "{}", "--file", "x", "--channel", "news")
    await refused(/\/nowhere cannot be read \(ENOENT\)/, "--file", "/nowhere", "--channel", "news")
    await refused(/\(403, forbidden\)/, "{}", "--channel", "other")
    await refused(
      /^[^\n]*request to the API: .*header/,
      "{}",
      "--channel",
      "news",
      "--topic",
      "a\nb"
    )
    await refused(/Expected failed_share=/, "{}", "--channel", "news", "--pause-when", "2")
    await refused(/TTL must be/, "{}", "--channel", "news", "--ttl", "-1")
    await refused(/notification/, '{"web_push":8030}', "--channel", "news")
    await refused(/Expected letters/, "{}", "--channel", "news", "--source", "a.b")
    const { stdout } = await runCli(["publish", "--help"])
    assert.match(stdout, /EXAMPLES[\s\S]*bellcast publish --channel news --file hello\.json/)
    const [, example] = /bellcast publish '(.*)' --channel/.exec(stdout)!
    await publish(example!, "--channel", "news", "--dry-run")
    await using quiet = await startNats()
    const none = await runCli(["publish", "{}", "--channel", "news", "--nats", quiet.url])
    assert.match(none.stderr, /no gateway responds/)
  })
})
