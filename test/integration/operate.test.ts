// The verbs that only read: what they print of a service's history, and of an empty NATS.
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { startWithHistory } from "#test/history.ts"
import { channels, subscriptionOf, userOf } from "#test/history-commands.ts"
import { runCli } from "#test/run-cli.ts"

const run = (...args: ReadonlyArray<string>) => runCli(args)

const line = (n: number, ...cells: ReadonlyArray<string>) =>
  new RegExp(`^${[userOf(n), subscriptionOf(n).slice(0, 12), ...cells].join(" +")}$`, "m")

/** A broadcast that was refused; its reason tries to steer the terminal. */
const appendRefused = (url: string) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const log = yield* EventLog
      const subject = subjects.broadcast("billing", channels[1]!)
      const { seq } = yield* log.append("log", { subject, type: "broadcast", body: {} })
      const body = { broadcast: seq, subject, reason: "TTL must be\u001b[2J right", at: 1 }
      yield* log.append("log", {
        subject: subjects.rejected(seq),
        type: "broadcast.rejected",
        body
      })
      return seq
    }).pipe(Effect.provide(natsLayer({ url, name: "test" })))
  )

describe("the verbs of an operator", { timeout: 90_000 }, () => {
  let past: Awaited<ReturnType<typeof startWithHistory>>
  let refused = 0
  beforeAll(async () => {
    past = await startWithHistory()
    refused = await appendRefused(past.url)
  })
  afterAll(() => past[Symbol.asyncDispose]())

  it("tell of a finished broadcast each push's last fate, and that they add up", async () => {
    const { code, stderr, stdout } = await run("audit", String(past.done), "--nats", past.url)
    assert.strictEqual(stderr, "")
    assert.strictEqual(code, 0)
    assert.match(
      stdout,
      new RegExp(`^broadcast ${past.done} on channel news, accepted \\d{4}-\\S+Z from rest$`, "m")
    )
    const sum =
      "4 accepted = 2 delivered + 0 waiting + 0 retrying + 0 expired + 1 dead + 1 gone; finished"
    assert.include(stdout.split("\n"), sum)
    assert.match(stdout, line(1, "delivered", "201", "accepted", "1", "12"))
    assert.match(stdout, line(2, "delivered", "201", "accepted", "3", "12"))
    assert.match(stdout, line(3, "gone", "410", "gone", "1", "12"))
    assert.match(stdout, line(4, "dead", "503", "dead", "1", "12"))
    assert.notInclude(stdout, "push.example.com")
    assert.lengthOf(stdout.trimEnd().split("\n"), 7)
  })

  it("tell of an open broadcast what waits, as a person and as a program reads it", async () => {
    const { stdout } = await run("audit", String(past.open), "--nats", past.url)
    assert.include(
      stdout,
      "3 accepted = 1 delivered + 1 waiting + 1 retrying + 0 expired + 0 dead + 0 gone; " +
        "running, 0 of 2 shards done\n"
    )
    assert.isTrue(stdout.endsWith("\n1 more waiting: no result yet\n"))
    const json = JSON.parse(
      (await run("audit", String(past.open), "--json", "--nats", past.url)).stdout
    )
    assert.deepInclude(json, {
      broadcast: past.open,
      channel: "news",
      accepted: 3,
      delivered: 1,
      waiting: 1,
      retrying: 1,
      finished: false
    })
    assert.deepStrictEqual(json.pushes[1], {
      ...{
        user: userOf(2),
        subscription: subscriptionOf(2),
        fate: "retrying",
        status: 503,
        reason: "retrying",
        attempts: 1,
        millis: 12
      }
    })
  })

  it("tell why a broadcast was refused, and that one does not exist", async () => {
    const { stdout } = await run("audit", String(refused), "--nats", past.url)
    assert.match(
      stdout,
      new RegExp(
        `^broadcast ${refused} on channel wetter süd, accepted \\S+ from billing\n` +
          "rejected: TTL must be\\\\u001b\\[2J right\n$"
      )
    )
    // A sequence that is another command's.
    for (const unknown of [String(past.lastCommand), "999999"]) {
      for (const verb of ["audit", "dead"]) {
        const { code, stderr, stdout } = await run(verb, unknown, "--nats", past.url)
        assert.deepStrictEqual(
          { code, stderr, stdout },
          { code: 1, stderr: `bellcast: there is no broadcast ${unknown}\n`, stdout: "" }
        )
      }
    }
  })

  it.for([
    ["audit", "0"],
    ["audit", "-1"],
    ["dead", "0"]
  ] as const)("refuse what is no id of a broadcast: %s %s", async ([verb, id]) => {
    const { code, stderr } = await run(verb, id, "--nats", past.url)
    assert.strictEqual(code, 1)
    assert.include(stderr, `Expected a whole number from 1 on, got ${id}`)
  })

  it("list dead letters, of all broadcasts or of one", async () => {
    for (const args of [["dead"], ["dead", String(past.done)]]) {
      const { stdout } = await run(...args, "--nats", past.url)
      assert.match(
        stdout,
        new RegExp(
          `^ *${past.done} +news +${userOf(4)} +${subscriptionOf(4).slice(0, 12)} ` +
            "+400 +refused +1 +1970-\\S+Z$",
          "m"
        )
      )
    }
    assert.strictEqual(
      (await run("dead", String(past.open), "--nats", past.url)).stdout,
      "no dead letters\n"
    )
    const { broadcast, channel, reason } = JSON.parse(
      (await run("dead", "--json", "--nats", past.url)).stdout
    )
    assert.deepStrictEqual([broadcast, channel, reason], [past.done, "news", "refused"])
  })

  it("show what is declared without a connection, and with one how much there is", async () => {
    const { code, stdout } = await run("streams")
    assert.strictEqual(code, 0)
    for (const name of [
      "BELLCAST_LOG",
      "BELLCAST_WORK",
      "planner",
      "deliver",
      "retry",
      "projector",
      "tally",
      "bellcast_cache"
    ])
      assert.match(stdout, new RegExp(`^${name} `, "m"))
    assert.notInclude(stdout, "PENDING")
    const live = (await run("streams", "--live", "--nats", past.url)).stdout
    assert.match(live, /^CONSUMER .* PENDING +UNANSWERED$/m)
    // Ten broadcasts, which no planner has taken.
    assert.match(live, /^planner .* 10 +0$/m)
    // The last message of WORK is a dead letter, which the tally does not count.
    assert.match(live, /^tally .* bellcast_broadcasts\/meta +0$/m)
    // The refused broadcast came when nobody projected any more.
    assert.match(live, /^projector .* bellcast_subscriptions\/meta +[1-9]\d*$/m)
    assert.match(
      live,
      new RegExp(`^BELLCAST_WORK .* ${past.lastWork} +[\\d.]+ KiB +\\d+ % +1$`, "m")
    )
    // Only one broadcast is still under way.
    assert.match(live, /^bellcast_broadcasts .* 1 +\d+ B +\d+ %$/m)
  })

  it("say in two lines what is wrong with how they were called", async () => {
    const { code, stderr, stdout } = await run("audit", "--nope")
    assert.deepStrictEqual([code, stdout], [1, ""])
    assert.match(
      stderr,
      new RegExp(
        "^bellcast: Unrecognized flag: --nope .*\n" +
          "usage: bellcast audit \\[flags\\] \\[<broadcast>\\] \\(--help tells more\\)\n$"
      )
    )
  })

  it("show no password of an address that stands in the wrong place", async () => {
    const { code, stderr } = await run("audit", "nats://bell:hush@127.0.0.1:4222")
    assert.strictEqual(code, 1)
    assert.match(stderr, /^bellcast: Invalid value for argument <broadcast>: "nats:/)
    assert.notInclude(stderr, "hush")
  })

  it.for([["audit", "1"], ["dead"], ["streams", "--live"], ["rebuild"]])(
    "fail in one line when NATS does not answer: %s",
    async (verb) => {
      const { code, stderr, stdout } = await run(
        ...verb,
        "--nats",
        "nats://user:password@127.0.0.1:1"
      )
      assert.strictEqual(code, 1)
      assert.match(
        stderr,
        new RegExp(
          "^bellcast: no answer from NATS at 127\\.0\\.0\\.1:1 \\(.+\\): " +
            "is the service running, and is --nats right\\?\n$"
        )
      )
      assert.strictEqual(stdout, "")
    }
  )
})
