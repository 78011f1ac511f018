// What a log line may say, and that none is lost.
import { spawnSync } from "node:child_process"
import { Effect, Logger } from "effect"
import { assert, describe, it } from "vitest"
import { logRequest } from "#gateway/pipeline/request-log.ts"
import { fieldOf, printableJson, withoutSecrets } from "#telemetry/redaction.ts"

describe("a URL in a line", () => {
  it.for([
    [
      "POST https://fcm.googleapis.com/fcm/send/SECRET failed",
      "POST https://fcm.googleapis.com/... failed"
    ],
    ["https://h?token=SECRET", "https://h/..."],
    ["HTTPS://h/SECRET", "HTTPS://h/..."],
    ["https://user:SECRET@h:8443/x", "https://h:8443/..."],
    ["https://h.:8443./SECRET.", "https://h.:8443/..."],
    ["nats://user:SECRET@a:4222,nats://b", "nats://a:4222/..."],
    ["nats://a,user:SECRET@b", "nats://b/..."],
    ["nats://SECRET@h.", "nats://h/..."],
    [
      "set BELLCAST_NATS_URL=nats://127.0.0.1:4222.",
      "set BELLCAST_NATS_URL=nats://127.0.0.1:4222."
    ],
    [
      "from https://push.example.com, or (tls://[::1]): https://h/.",
      "from https://push.example.com, or (tls://[::1]): https://h/."
    ],
    ["/v1/subscriptions/https%3A%2F%2Fh%2FSECRET", "/v1/subscriptions/https%3A%2F%2F..."],
    ["q=a%20https%3a//user%3aSECRET%40h&_limit=1", "q=a%20https%3a//...&_limit=1"],
    ["https:%2F%2Fh/SECRET", "https:%2F%2F..."],
    ["https://h/a%20SECRET?to=https%3A%2F%2Fb", "https://h/..."],
    ["/v1/channels/100%25", "/v1/channels/100%25"],
    [
      "from https://github.com/nats-io/nats-server/releases, or",
      "from https://github.com/nats-io/nats-server/releases, or"
    ],
    ["https://github.com/nats-io/nats-server/releases/SECRET", "https://github.com/..."],
    ["https://user:SECRET@github.com/nats-io/nats-server/releases", "https://github.com/..."],
    ["nothing to hide", "nothing to hide"]
  ] as const)("of %s is %s", ([text, said]) => {
    assert.equal(withoutSecrets(text), said)
  })
})

describe("a field", () => {
  it.for([
    "authorization",
    "endpoint",
    "keys",
    "auth",
    "p256dh",
    "privateKey",
    "token",
    "password",
    "secret"
  ])("named %s is struck out, on the line and in what stands on it", (name) => {
    assert.equal(fieldOf(name, "SECRET"), "[redacted]")
    assert.deepEqual(fieldOf("subscription", { id: 1, [name]: { a: "SECRET" } }), {
      id: 1,
      [name]: "[redacted]"
    })
    assert.deepEqual(fieldOf("subscriptions", [{ [name]: "SECRET" }]), [{ [name]: "[redacted]" }])
  })

  it("shows no more of a URL than a line does, and everything else as it is", () => {
    assert.deepEqual(fieldOf("at", { url: "https://h/SECRET", n: 1, none: null }), {
      url: "https://h/...",
      n: 1,
      none: null
    })
    assert.deepEqual(fieldOf("numbers", [1, 2]), [1, 2])
  })
})

it("writes what is still gathered when the process ends", () => {
  const program = `
    import { Effect } from "effect"
    import { loggerLayer } from "#telemetry/logger.ts"
    const lines = Effect.forEach(Array(500).keys(), (n) => Effect.logInfo("line", { n }))
    Effect.runSync(lines.pipe(Effect.provide(loggerLayer("info", false))))
    process.exit(0)`
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    encoding: "utf8"
  })
  const lines = stdout.trim().split("\n")
  assert.lengthOf(lines, 500)
  assert.deepInclude(JSON.parse(lines.at(-1)!), { level: 30, msg: "line", n: 499 })
})

it("lets no secret through, however deep, long or strange what carries it", () => {
  const program = `
    import { Effect } from "effect"
    import { loggerLayer } from "#telemetry/logger.ts"
    const url = "https://push.example.com/send/SECRET"
    const cause = Object.assign(new Error("connect " + url), { code: url, operation: url, url })
    const err = new Error("outer", { cause: new Error("middle", { cause }) })
    const loop = { url }
    loop.loop = loop
    const all = Effect.gen(function* () {
      yield* Effect.logWarning(url, err)
      const deep = { a: { b: { c: { d: { e: { f: { url, endpoint: url } } } } } } }
      yield* Effect.logWarning("field", { err, inner: { err }, deep })
      yield* Effect.logWarning("strange", {
        loop, at: new URL(url), bytes: Buffer.from("SECRET"), Authorization: "SECRET",
        map: new Map([[url, url]])
      })
      yield* Effect.logWarning("long", { list: Array(5000).fill(url), text: "x".repeat(1e6) + url })
      yield* Effect.logWarning("named", cause)
        .pipe(Effect.annotateLogs({ endpoint: "SECRET", url }))
      yield* Effect.logWarning("nats://user:SECRET@h:4222")
        .pipe(Effect.annotateLogs({ nested: { token: "SECRET" } }))
    })
    Effect.runSync(all.pipe(Effect.provide(loggerLayer("info", false))))`
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    encoding: "utf8"
  })
  assert.lengthOf(stdout.trim().split("\n"), 6)
  assert.notInclude(stdout, "SECRET")
  assert.notInclude(JSON.stringify(stdout), "83,69,67")
  assert.isBelow(stdout.length, 30_000)
})

/** Whatever a client may put into a header or a path of a batch. */
const hostile = [
  "\u001b[2J\u001b]0;title\u0007",
  "\u009b31m\u0085\u007f",
  "a\r\n00:00:00.000 info  request.summary code=200",
  "\u202egnp.exe \u2066\u2067\u200f\u061c",
  "a\u2028b\u2029c",
  "agent code=200 errno=0"
]

const logged = (pretty: boolean): string => {
  const program = `
    import { Effect } from "effect"
    import { loggerLayer } from "#telemetry/logger.ts"
    const hostile = ${JSON.stringify(hostile)}
    const all = Effect.forEach(hostile, (text) => Effect.andThen(
      Effect.logInfo("summary", { agent: text, path: [text], code: 400, err: new Error(text) }),
      Effect.logInfo(text)
    ))
    Effect.runSync(all.pipe(Effect.provide(loggerLayer("info", ${pretty}))))`
  return spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" })
    .stdout
}

/** Characters that control a terminal or end a line; the ends of the lines do not count. */
const steering = /[^\P{Cc}\n]|[\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

describe("a text from a client", () => {
  it("steers no terminal, and makes up no line and no field, in lines for people", () => {
    const lines = logged(true)
    assert.deepEqual(lines.match(steering), null)
    const own = lines.split("\n").filter((line) => /^\d/.test(line))
    assert.lengthOf(own, 2 * hostile.length)
    for (const line of own) assert.match(line, /^[\d:.]{12} info {2}/)
    // The line feed of a message starts no line that looks like one of the log.
    assert.lengthOf(lines.trimEnd().split("\n"), 2 * hostile.length + 1)
    assert.include(lines, ' agent="agent code=200 errno=0" ')
    assert.include(lines, "\\u001b[2J")
  })

  it("is the same text in lines of JSON, which hold no such character", () => {
    const lines = logged(false)
    assert.deepEqual(lines.match(steering), null)
    const read = lines
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
    assert.deepEqual(
      read.filter(({ msg }) => msg === "summary").map(({ agent }) => agent),
      hostile
    )
    assert.deepEqual(
      read.filter(({ msg }) => msg !== "summary").map(({ msg }) => msg),
      hostile
    )
  })
})

describe("the line of a request", () => {
  // "\u0080" and the other controls take six characters, a quote two.
  it.for(["a", '"', "\u0080", "\u202e", "\u{e0041}"])("is short however many %j arrive", (each) => {
    const long = each.repeat(16_000)
    const headers = { "user-agent": long, "accept-language": long, "x-request-id": long }
    const request = { method: "GET", target: `/v1/${long}?_limit=1&${long}`, headers }
    const trace = { began: 0, caller: undefined, person: undefined }
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>(({ message }) => void lines.push(line(message)))
    const line = (message: unknown) => printableJson((message as ReadonlyArray<unknown>)[1])
    const response = { status: 200, headers: {} }
    Effect.runSync(
      Effect.provide(
        logRequest(request as never, response, trace, 1, false),
        Logger.layer([logger])
      )
    )
    assert.lengthOf(lines, 1)
    assert.isBelow(lines[0]!.length, 3_000)
    const { agent } = JSON.parse(lines[0]!) as { readonly agent: string }
    assert.isTrue(long.startsWith(agent) && agent !== "")
    assert.isAtMost(printableJson(agent).length, 202)
  })
})
