// Malformed headers and bodies on every subject that is stored: consumers, followers, lists and the
// verbs of the command line read past them, so do a start and a rebuild.
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import fc from "fast-check"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { schemas } from "#domain/messages/forms.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { temporaryFolder } from "../support/folder.ts"
import { userOf } from "../support/history-commands.ts"
import { connectRaw, malformedBlocks, oddBlocks, type RawClient } from "../support/malformed.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { type Service, secretEnvironment, startService } from "../support/service.ts"
import { idOf } from "../support/users.ts"

/** Of no broadcast. */
const none = 9_000_000

const subjects = [
  ...[
    "broadcast.billing.news",
    "broadcast.rest.news",
    "broadcast.rest.=direct",
    "broadcast.rest.=channels",
    "part.rest"
  ],
  ...[`subscription.${userOf(7)}`, `registration.news.${userOf(7)}`],
  ...["publisher.news", "token.build", "nonsense", "broadcast.=ZZ.\xff"]
]
  .map((place) => `cmd.${place}`)
  .concat(
    ...["state", "rejected"].map((kind) => `evt.${kind}.${none}`),
    ...[`evt.finished.news.${none}`, "evt.adopted.key", "evt.nonsense"],
    ...[`plan.news.${none}`, `job.shard.${none}.all`, `job.limited.${none}.all`],
    ...[`job.retry.push_example_com.${none}.${userOf(7)}.a`, "job.nonsense"],
    ...[`outcome.news.${none}.shard.all`, `outcome.news.${none}.push.${userOf(7)}.a`],
    ...[`dead.news.${none}.${userOf(7)}.a`, `look.${userOf(7)}.${userOf(8)}.user.1`]
  )
  .map((place) => `bellcast.${place}`)

/** Bodies that are no message of any type. */
const bodies = [
  "",
  "null",
  "\ufeff{}",
  "[".repeat(10_000),
  `${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`,
  '{"__proto__":{"user":"x"},"constructor":1}',
  '{"data":{"title":"\\ud800"},"user":"\\udfff","at":1e400}',
  '{"broadcast":1e300,"at":-1e308,"seq":9007199254740993}',
  '{"at":1,"user":"x","results":[{"fate":"__proto__"}]}',
  "\u0000\u2028"
]

let nats: TestNats
let push: PushService
let service: Service
let raw: RawClient
let first: string

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  push = await startPushService()
  service = await startService({ natsUrl: nats.url })
  raw = await connectRaw(nats.url)
  await join([service.url], "news", [push.subscribe().subscription])
  first = await publish(service.url, "news", { n: 1 })
  await finished(service.url, "news", first)
})
afterAll(async () => {
  for (const each of [raw, service, push, nats]) await each?.[Symbol.asyncDispose]()
})

/** That a broadcast is delivered now, and that a process printed lines of its log alone. */
const delivers = async () => {
  const broadcast = await publish(service.url, "news", { still: "here" })
  const counts = await finished(service.url, "news", broadcast)
  assert.deepInclude(counts, { accepted: 1, delivered: 1 })
  const lines = service.output().trim().split("\n")
  for (const line of lines) assert.property(JSON.parse(line), "level", line)
  return lines
}

const withType = (type: string) => `NATS/1.0\r\nBellcast-Type: ${type}\r\n\r\n`

const sendAll = async () => {
  const types = [...schemas.keys()]
  for (const [i, subject] of subjects.entries()) {
    for (const block of Object.values({ ...malformedBlocks, ...oddBlocks }))
      raw.send(subject, block, '{"data":{"n":1}}')
    for (const [n, body] of bodies.entries()) {
      raw.send(subject, "NATS/1.0\r\n\r\n", body)
      // Every type with each body on some subject, and four types on each.
      for (let k = 0; k < 4; k++)
        raw.send(subject, withType(types[(4 * i + n + k) % types.length]!), body)
    }
    await raw.flush()
  }
}

/** Random blocks and bodies; a failure names the seed. */
const sendRandom = (seed: number) => {
  const bytes = fc.uint8Array({ maxLength: 60 }).map((some) => Buffer.from(some))
  const [blocks, texts] = [1, 2].map((n) => fc.sample(bytes, { seed: seed + n, numRuns: 300 }))
  for (const [i, block] of blocks!.entries())
    raw.send(
      subjects[i % subjects.length]!,
      block.toString("latin1"),
      texts![i]!.toString("latin1")
    )
  return raw.flush()
}

/** On a busy machine an answer of NATS comes too late: a follower loses its lease by that. */
const isOfSlowness = (line: string) =>
  line.includes("starts again") && /timeout|unanswered|lease/i.test(line)

const consumersAreDone = async () => {
  const nc = await connect({ servers: nats.url })
  const jsm = await jetstreamManager(nc)
  for (const [stream, durable] of [
    ...["planner", "states"].map((name) => ["BELLCAST_LOG", name] as const),
    ...["deliver", "limited", "retry"].map((name) => ["BELLCAST_WORK", name] as const)
  ])
    await until(
      () => jsm.consumers.info(stream, durable),
      ({ num_ack_pending, num_pending }) => num_pending + num_ack_pending === 0
    )
  await nc.close()
}

describe("malformed messages on every subject", { timeout: 240_000 }, () => {
  it("stop no consumer and no follower, and fill no log", async () => {
    const before = service.output().split("\n").length
    await sendAll()
    const seed = Math.floor(Math.random() * 1e9)
    await sendRandom(seed)
    const lines = (await delivers()).slice(before)
    await consumersAreDone()
    const warnings = lines.filter((line) => /"level":[4-6]0/.test(line))
    assert.isBelow(warnings.length, 40, `seed ${seed}: ${warnings.join("\n")}`)
    const told = /was delivered many times|is given up|starts again/
    const isOfMessages = (line: string) => told.test(line) && !isOfSlowness(line)
    assert.deepEqual(lines.filter(isOfMessages), [], `seed ${seed}`)
  })

  it("leave every list as it is", async () => {
    for (const path of [
      ...["/broadcasts", `/broadcasts/${first}`, `/broadcasts/${first}/pushes`],
      ...["/channels/news/broadcasts", "/channels/news", "/dead"]
    ]) {
      const { body, status } = await call(service.url, "GET", path, "publisher")
      assert.include([200, 403], status, `${path}: ${JSON.stringify(body)}`)
    }
    await delivers()
  })

  it("leave every verb of the command line as it is", async () => {
    const folder = await temporaryFolder()
    const verbs = [
      ...[`audit ${first}`, "dead", `dead ${first}`, `redrive ${first} --dry-run`, "streams"],
      ...["broadcast list", `broadcast show ${first}`, "channel list", "channel show news"],
      ...[`user show ${idOf("user0")}`, "permissions list", "token list", "keys list"],
      `export ${folder}/export`
    ]
    const settings = { ...secretEnvironment, BELLCAST_NATS_URL: nats.url }
    for (const verb of verbs) {
      const { code, stderr, stdout } = await runCli(verb.split(" "), settings)
      assert.equal(code, 0, `${verb}: ${stderr}${stdout}`)
    }
  })

  it("are read past by a start and by a rebuild", async () => {
    assert.equal(await service.stop(), 0)
    const { code, stderr } = await runCli(["rebuild", "--nats", nats.url])
    assert.equal(code, 0, stderr)
    service = await startService({ natsUrl: nats.url })
    await delivers()
  })
})
