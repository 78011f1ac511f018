// `bellcast verify` beside a service that runs: what is under way is no difference, and what is
// changed behind the back of the service is found all the same.
import { jetstream } from "@nats-io/jetstream"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, finished, join, publish, until } from "../support/client.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { useService } from "../support/use-service.ts"

const shared = useService({}, { syncAlways: false })
let push: PushService
beforeAll(async () => {
  push = await startPushService()
})
afterAll(() => push?.[Symbol.asyncDispose]())

const verify = async () => {
  const { code, stderr, stdout } = await runCli(["verify", "--json", "--nats", shared.nats.url])
  return { code, stderr, found: JSON.parse(stdout || "{}") }
}

/** Does something again and again until the scope ends, which fails if that failed. */
const again = (what: (n: number) => Promise<unknown>) => {
  let isOver = false
  const run = async () => {
    for (let n = 0; !isOver; n++) await what(n)
  }
  const running = run().then(
    () => undefined,
    (error: unknown) => error
  )
  return {
    [Symbol.asyncDispose]: async () => {
      isOver = true
      assert.isUndefined(await running)
    }
  }
}

describe("verify beside a running service", { timeout: 180_000 }, () => {
  it("finds no difference while users come and go and broadcasts are sent and paused", async () => {
    const { url } = shared.service
    const agents = Array.from({ length: 40 }, (_, n) =>
      push.subscribe({ script: n % 4 === 0 ? ["503", "503", "201"] : ["201"] })
    )
    await join(
      [url],
      "news",
      agents.map(({ subscription }) => subscription)
    )
    const moving = ["news", "weather", "sports"]
    await using _users = again(async (n) => {
      const channel = moving[n % moving.length]!
      const path = `/channels/${channel}/registration`
      const user = `visitor${n % 7}`
      const { status } = await call(url, n % 2 === 0 ? "PUT" : "DELETE", path, user)
      assert.oneOf(status, [202, 404])
    })
    await using _broadcasts = again(async (n) => {
      const broadcast = await publish(url, "news", { n })
      if (n % 3 !== 0) return finished(url, "news", broadcast)
      const at = `/channels/news/broadcasts/${broadcast}`
      const set = (state: string) => call(url, "PATCH", at, "publisher", { data: { state } })
      const paused = await set("paused")
      if (paused.status === 200) await set("running")
      return undefined
    })
    for (let round = 0; round < 3; round++) {
      const { code, found, stderr } = await verify()
      assert.deepEqual([found.differences, found.count, stderr, code], [[], 0, "", 0])
    }
  })

  it("finds what was changed meanwhile, prints no secret, and exits with 1", async () => {
    const { url } = shared.service
    await using admin = await connectAdmin(shared.nats.url)
    const broadcast = await publish(url, "news", { n: 1 })
    const counts = await finished(url, "news", broadcast)
    assert.isTrue(counts.finished)
    const list = (await admin.jsm.streams.info("KV_bellcast_subscriptions", {
      subjects_filter: "$KV.bellcast_subscriptions.*"
    }))!.state.subjects!
    const [subject = ""] = Object.keys(list).filter((each) => !each.endsWith(".meta"))
    const stored = await admin.jsm.streams.getMessage("KV_bellcast_subscriptions", {
      last_by_subj: subject
    })
    const value = stored!.json<{ seq: number; subscriptions: Record<string, unknown> }>()
    await jetstream(admin.nc).publish(subject, JSON.stringify({ ...value, subscriptions: {} }))
    const { code, found, stderr } = await verify()
    assert.equal(code, 1)
    assert.match(stderr, /^bellcast: 1 entry differs from what the streams say: /)
    const expected = { bucket: "subscriptions", is: "changed", stream: "LOG", since: value.seq }
    assert.deepInclude(found.differences[0], { ...expected, members: ["subscriptions"] })
    const text = await runCli(["verify", "--nats", shared.nats.url])
    const [id = ""] = Object.keys(value.subscriptions)
    for (const secret of ["127.0.0.1", "p256dh", id, "basicauth"])
      assert.notInclude(JSON.stringify(found) + text.stdout, secret)
    await jetstream(admin.nc).publish(subject, JSON.stringify(value))
    assert.equal((await verify()).code, 0)
  })

  it("exits with 2 where nobody answers, or nobody works as projection", async () => {
    const away = await runCli(["verify", "--nats", "nats://127.0.0.1:1"])
    assert.deepEqual([away.code, away.stdout], [2, ""])
    await using admin = await connectAdmin(shared.nats.url)
    const subject = "$KV.bellcast_permissions.meta"
    const meta = await admin.jsm.streams.getMessage("KV_bellcast_permissions", {
      last_by_subj: subject
    })
    await jetstream(admin.nc).publish(subject, JSON.stringify({ v: 1, unbuilt: true }))
    const unbuilt = await verify()
    assert.equal(unbuilt.code, 2)
    assert.match(unbuilt.stderr, /not checked: KV_bellcast_permissions is gone or of another form/)
    await jetstream(admin.nc).publish(subject, meta!.string())
    await until(verify, ({ code }) => code === 0)
  })
})
