// A service that delivers with more than one process: it starts the others when it is busy with
// pushes. They keep the promises of one process together, and are seen as one.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { assert, describe, it } from "vitest"
import { deathsMax, ownMachine, processesFor } from "#children/processes.ts"
import { childrenOf } from "../support/children.ts"
import { call, finished, publish, until } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { makeFolder } from "../support/folder.ts"
import { startNats } from "../support/nats.ts"
import { type Service, secretEnvironment, sources, startService } from "../support/service.ts"
import { spawnPushService } from "../support/spawn-push-service.ts"

/** 50000 take minutes. */
const size = Number(process.env["BELLCAST_TEST_KILLED_SUBSCRIPTIONS"] ?? 2_000)
/** Makes a process busy for more than a second. */
const many = 4_000
const processes = 3
/** As many may be sent twice when all are killed together; a child has a third of it. */
const unrecordedMax = 240
const settings = {
  BELLCAST_DELIVERY_PROCESSES: String(processes),
  BELLCAST_UNRECORDED_PUSHES_MAX: String(unrecordedMax)
}

const readyChildren = (service: Service): number =>
  service.output().match(/"process":"delivery-\d+".*"msg":"ready"/g)?.length ?? 0

/** A service whose other processes deliver, too. */
const startBusy = async () => {
  const nats = await startNats()
  const push = await spawnPushService()
  // On a busy machine the process would wait for a push service that decrypts, and not be busy.
  const quick = await spawnPushService({ decrypt: false })
  const service = await startService({ natsUrl: nats.url, env: settings })
  const pid = service.process.pid!
  /** Slow pushes, so that each process has all that it may under way when it is killed. */
  const fill = async (slow: number) =>
    fillChannels(nats.url, [
      { name: "many", subscriptions: await quick.subscribe(many) },
      { name: "news", subscriptions: await push.subscribe(slow, { script: ["slow 1000"] }) }
    ])
  const busy = async () => {
    for (let n = 0; readyChildren(service) < processes - 1 && n < 20; n++) {
      const id = await publish(service.url, "many", { n })
      await finished(service.url, "many", id, 120_000)
    }
    await until(
      () => Promise.resolve(readyChildren(service)),
      (count) => count >= processes - 1,
      60_000
    )
    await push.reset()
  }
  return {
    nats,
    push,
    service,
    pid,
    fill,
    busy,
    [Symbol.asyncDispose]: async () => {
      await service[Symbol.asyncDispose]()
      await push[Symbol.asyncDispose]()
      await quick[Symbol.asyncDispose]()
      await nats[Symbol.asyncDispose]()
    }
  }
}

const metricsOf = async (service: Service) => {
  const { body } = await call(service.metricsUrl(), "GET", "/metrics")
  return String(body)
}

/** The sum of the series of a metric. */
const sumOf = (text: string, name: string): number =>
  [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "gm"))].reduce(
    (sum, [, value]) => sum + Number(value),
    0
  )

describe.skipIf(process.platform !== "linux")("a service with three processes", () => {
  it("misses nobody while one of them is killed in each second, and repeats within the bound", {
    timeout: 240_000 + size * 20
  }, async () => {
    await using started = await startBusy()
    const { busy, fill, pid, push, service } = started
    await fill(size)
    assert.deepEqual(childrenOf(pid), [], "a process at rest is alone")
    await busy()
    assert.lengthOf(childrenOf(pid), processes - 1)
    const broadcast = await publish(service.url, "news", { n: 1 })
    let isOver = false
    let kills = 0
    const counts: Array<number> = []
    const killing = (async () => {
      while (!isOver) {
        const [child] = childrenOf(pid)
        if (child !== undefined) {
          process.kill(child, "SIGKILL")
          kills += 1
        }
        counts.push(sumOf(await metricsOf(service), "bellcast_push_attempts_total"))
        await pause(1_000)
      }
    })()
    const done = await finished(service.url, "news", broadcast, 60_000 + size * 15)
    isOver = true
    await killing
    const { counts: sent, faults, tokens } = await push.report()
    process.stdout.write(`${kills} kills, ${sent.duplicates} of ${size} sent twice\n`)
    assert.deepInclude(done, { accepted: size, delivered: size, dead: 0, waiting: 0 })
    assert.equal(sent.distinct, size)
    assert.deepEqual(faults, [])
    assert.isAtLeast(kills, 2)
    // The first process delivers alone then.
    assert.isAtMost(kills, (processes - 1) * deathsMax)
    assert.isAtMost(sent.duplicates, kills * (unrecordedMax / processes))
    assert.equal(tokens, 1, "all processes send one token, also those that began later")
    assert.deepEqual(
      counts,
      counts.toSorted((a, b) => a - b),
      "a counter went back"
    )
    assert.match(service.output(), /"process":"delivery-\d","signal":"SIGKILL".*started again/)
    assert.isAtLeast(
      sumOf(await metricsOf(service), "bellcast_delivery_process_deaths_total"),
      kills - 1
    )
  })

  it("repeats no more than one process may, where all are killed at the same time", {
    timeout: 300_000 + size * 20
  }, async () => {
    await using started = await startBusy()
    const { busy, fill, nats, pid, push, service } = started
    await fill(size)
    await busy()
    const broadcast = await publish(service.url, "news", { n: 1 })
    // The windows have grown by then: each process has as many under way as it may have.
    await push.waitForDistinct(Math.min(1_000, size / 2), 60_000)
    for (const each of [pid, ...childrenOf(pid)]) process.kill(each, "SIGKILL")
    await using again = await startService({ natsUrl: nats.url, env: settings })
    const done = await finished(again.url, "news", broadcast, 120_000 + size * 15)
    assert.deepInclude(done, { accepted: size, delivered: size, dead: 0, waiting: 0 })
    const { counts } = await push.report()
    process.stdout.write(`${counts.duplicates} of ${size} sent twice\n`)
    assert.equal(counts.distinct, size)
    assert.isAtMost(counts.duplicates, unrecordedMax)
  })

  it("shows the metrics of all at one port, and drains all when it is told to stop", {
    timeout: 240_000
  }, async () => {
    await using started = await startBusy()
    const { busy, fill, nats, pid, push, service } = started
    await fill(1_000)
    await busy()
    const children = childrenOf(pid)
    const pushes = async () => sumOf(await metricsOf(service), "bellcast_pushes_total")
    // The others report once a second.
    const before = await until(pushes, (sum) => sum > 0 && sum % many === 0, 10_000)
    const id = await publish(service.url, "many", { n: "counted" })
    await finished(service.url, "many", id, 120_000)
    await until(pushes, (sum) => sum === before + many, 10_000)
    const text = await metricsOf(service)
    assert.equal(sumOf(text, "bellcast_delivery_processes"), processes)
    assert.match(text, /^bellcast_role_processes\{role="delivery"\} 3$/m)
    assert.match(text, /^bellcast_build_info\{.*roles="gateway,.*\} 1$/m)
    assert.notMatch(text, /roles="delivery"/)
    assert.equal((await call(service.metricsUrl(), "GET", "/__heartbeat__")).status, 200)
    await push.reset()
    await publish(service.url, "news", { n: 2 })
    await push.waitForDistinct(1, 30_000)
    assert.equal(await service.stop(), 0)
    for (const child of children) assert.throws(() => process.kill(child, 0))
    await using again = await startService({ natsUrl: nats.url })
    await push.waitForDistinct(1_000, 60_000)
    assert.equal((await push.report()).counts.duplicates, 0)
    assert.isOk(again.url)
  })

  it("ends with its first process, also when that is killed", { timeout: 240_000 }, async () => {
    await using started = await startBusy()
    const { busy, fill, pid, service } = started
    await fill(1)
    await busy()
    const children = childrenOf(pid)
    await service.kill()
    await until(
      () => Promise.resolve(children.filter((child) => isRunning(child))),
      (left) => left.length === 0,
      30_000
    )
  })
})

describe.skipIf(process.platform !== "linux")("a service that nobody has set", () => {
  it("has none that lives on where its first process died while it started", async () => {
    await using nats = await startNats()
    await using _ = await startService({ natsUrl: nats.url })
    const child = spawn(
      process.execPath,
      [join(sources, "src/main.ts"), "--delivery-process=2/2/group"],
      {
        stdio: ["ignore", "ignore", "ignore", "ipc"],
        env: {
          ...process.env,
          ...secretEnvironment,
          BELLCAST_NATS_URL: nats.url,
          BELLCAST_AUTH_POLICIES: "basicauth",
          BELLCAST_METRICS_ADDRESS: "127.0.0.1:0"
        }
      }
    )
    // Long before it listens for that.
    child.disconnect()
    try {
      const ended = await once(child, "exit", { signal: AbortSignal.timeout(30_000) })
      assert.deepEqual(ended, [0, null])
    } finally {
      child.kill("SIGKILL")
    }
  }, 60_000)

  it("delivers on the cores that it has, beside a nats-server of its own", {
    timeout: 240_000
  }, async () => {
    await using folder = await makeFolder()
    await using push = await spawnPushService()
    const env = { BELLCAST_DELIVERY_PROCESSES: "", BELLCAST_DATA_DIR: folder.path }
    await using service = await startService({ cwd: folder.path, env })
    const natsUrl = (await readFile(join(folder.path, "nats/url"), "utf8")).trim()
    const others = processesFor(ownMachine()) - 1
    await fillChannels(natsUrl, [{ name: "many", subscriptions: await push.subscribe(many) }])
    for (let n = 0; readyChildren(service) < others && n < 20; n++) {
      const id = await publish(service.url, "many", { n })
      await finished(service.url, "many", id, 120_000)
    }
    await until(
      () => Promise.resolve(readyChildren(service)),
      (count) => count === others,
      60_000
    )
    assert.lengthOf(childrenOf(service.process.pid!), others)
    assert.deepEqual((await push.report()).faults, [])
    assert.equal(await service.stop(), 0)
  })
})

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
