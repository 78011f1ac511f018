// compose.yaml in a real Docker engine, by the commands that the documents give.
import { readFileSync, rmSync } from "node:fs"
import { stat } from "node:fs/promises"
import { join as pathOf } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, finished, join, publish, until } from "../support/client.ts"
import { provide } from "./base-images.ts"
import * as documented from "./commands.ts"
import { run } from "./run.ts"
import { makeStage, versions } from "./stage.ts"

const base = "http://127.0.0.1:9999/v1"
const longMillis = { timeout: 600_000 }

const deletion = `
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
const url = new URL(process.env.BELLCAST_NATS_URL)
const nc = await connect({ servers: url.host, user: url.username, pass: url.password })
await (await jetstreamManager(nc)).streams.delete("KV_bellcast_channels")
await nc.close()`

const imageOf = (file: string, pattern: RegExp) =>
  pattern.exec(readFileSync(new URL(`../../${file}`, import.meta.url), "utf8"))![1]!

beforeAll(async () => {
  for (const image of [
    imageOf("compose.yaml", /^ +image: (nats:\S+)/m),
    imageOf("src/Dockerfile", /^FROM (\S+)/m)
  ])
    console.log(`${image}: ${await provide(image)}`)
}, longMillis.timeout)

describe.each(versions)("With Compose %s", (version) => {
  let stage: Awaited<ReturnType<typeof makeStage>>
  const agents: Array<ReturnType<typeof stage.push.subscribe>> = []

  beforeAll(async () => {
    assert.include(await run("docker", ["version"]), "Server")
    stage = await makeStage(version)
  }, longMillis.timeout)
  afterAll(() => stage?.[Symbol.asyncDispose](), longMillis.timeout)

  const healthy = () =>
    until(
      () => call(base, "GET", "/__heartbeat__").catch(() => undefined),
      (answer) => answer?.status === 200
    )
  const refusalOf = (command: string) =>
    stage.sh(command).then(
      () => assert.fail(`${command} succeeded`),
      (error: { readonly stderr: string }) => error.stderr
    )
  const stateOf = async (service: string) => {
    const id = (await stage.sh(`docker compose ps --all --quiet ${service}`)).trim()
    return JSON.parse(await stage.sh(`docker inspect --format '{{json .}}' ${id}`))
  }
  /** Publishes, and waits until every browser has it. */
  const reachesAll = async () => {
    const before = agents.map(({ received }) => received.length)
    const broadcast = await publish(base, "news", { title: "Hello" })
    const counts = await finished(base, "news", broadcast)
    assert.deepInclude(counts, { accepted: agents.length, delivered: agents.length })
    assert.deepEqual(
      agents.map(({ received }) => received.length),
      before.map((count) => count + 1)
    )
    return broadcast
  }

  it("makes the same settings with make and with Docker alone", longMillis, async () => {
    const namesIn = () =>
      readFileSync(pathOf(stage.folder, ".env"), "utf8").match(/^[A-Z_]+(?==)/gm)!
    assert.match(await refusalOf(documented.start), /\.env/)
    await stage.sh(documented.makeKeysWithDocker)
    const withDocker = namesIn()
    rmSync(pathOf(stage.folder, ".env"))
    await stage.sh(documented.makeKeys)
    assert.deepEqual(namesIn(), withDocker)
    assert.equal((await stat(pathOf(stage.folder, ".env"))).mode & 0o777, 0o600)
    assert.match(
      await refusalOf(documented.start),
      /BELLCAST_\w+ is missing a value: set it in \.env/
    )
    stage.complete(".env")
  })

  it("starts, and neither container is root", longMillis, async () => {
    const up = stage.begin(documented.start)
    await healthy().catch((error) => assert.fail(`${error}\n${up.output()}`))
    for (const service of ["nats", "bellcast"]) {
      assert.equal((await stage.sh(`docker compose exec ${service} id -u`)).trim(), "1000")
      assert.equal((await stateOf(service)).HostConfig.ReadonlyRootfs, true)
    }
    const secret =
      "docker compose exec bellcast node -p process.env.BELLCAST_AUTH_OAUTH_CLIENT_SECRET"
    assert.equal((await stage.sh(secret)).trim(), `a$b#c "d" e`)
  })

  it("publishes, listens and audits", longMillis, async () => {
    const listener = stage.begin("docker compose exec bellcast bellcast listen news --count 1")
    await until(
      async () => listener.output(),
      (output) => output.includes("listening on channel news")
    )
    const location = /\/broadcasts\/(\d+)/.exec(await stage.sh(documented.publish))
    await until(
      async () => listener.output(),
      (output) => output.includes("from Bellcast")
    )
    const audit = await stage.sh(documented.audit.replace(/\d+$/, location![1]!))
    assert.include(audit, "1 accepted = 1 delivered")
    agents.push(...Array.from({ length: 40 }, () => stage.push.subscribe({ script: ["slow 300"] })))
    await join(
      [base],
      "news",
      agents.map(({ subscription }) => subscription)
    )
    await reachesAll()
  })

  it("goes on when NATS was killed", longMillis, async () => {
    await stage.sh("docker compose kill nats")
    const refused = await call(base, "POST", "/channels/news", "publisher", { data: {} })
    assert.equal(refused.status, 503)
    await stage.sh("docker compose start nats")
    await healthy()
    await reachesAll()
  })

  it("stops within its grace period and loses no push", longMillis, async () => {
    const before = agents.map(({ received }) => received.length)
    const broadcast = await publish(base, "news", { title: "Stop" })
    await stage.push.waitFor(({ requests }) => requests > 0)
    await stage.sh("docker compose stop")
    for (const service of ["nats", "bellcast"]) {
      const { ExitCode, OOMKilled } = (await stateOf(service)).State
      assert.deepEqual({ ExitCode, OOMKilled }, { ExitCode: 0, OOMKilled: false }, service)
    }
    await stage.sh("docker compose start")
    await healthy()
    await finished(base, "news", broadcast)
    assert.deepEqual(
      agents.map(({ received }) => received.length),
      before.map((count) => count + 1)
    )
  })

  it("rebuilds a bucket that is missing", longMillis, async () => {
    await stage.sh(`docker compose exec bellcast node --input-type=module -e '${deletion}'`)
    await stage.sh("docker compose restart bellcast")
    await until(
      () => stage.sh("docker compose logs bellcast"),
      (log) => log.includes("bellcast rebuild")
    )
    assert.match(await stage.sh(documented.rebuild), /bellcast_channels +3 +3/)
    await healthy()
    await reachesAll()
  })

  it("puts back a backup", longMillis, async () => {
    await stage.sh(documented.backup)
    assert.equal((await stat(pathOf(stage.folder, "streams.tar"))).mode & 0o777, 0o600)
    await healthy()
    await join([base], "news", [stage.push.subscribe().subscription], 1, "later")
    await stage.sh(documented.restore)
    await healthy()
    await reachesAll()
  })
})
