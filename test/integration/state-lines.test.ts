// The lines of the log about one broadcast, from its planning to its end.
import { assert, it } from "vitest"
import { broadcastPath, changeState } from "../support/broadcast-states.ts"
import { call, finishedAt, join, publishAt, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"
import { idOf } from "../support/users.ts"

interface Line {
  readonly [key: string]: unknown
  readonly broadcast: number
  readonly msg: string
}

const linesOf = (output: string, id: string): ReadonlyArray<Line> =>
  output
    .split("\n")
    .flatMap((line) => (/"msg":"broadcast \w+"/.test(line) ? [JSON.parse(line) as Line] : []))
    .filter(({ broadcast }) => broadcast === Number(id))

it("each change of a broadcast is one line, also those right after each other", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  await using service = await startService({ natsUrl: nats.url })
  const { subscription } = push.subscribe({ script: ["503 retry-after 600"] })
  await join([service.url], "news", [subscription])
  const at = new Date(Date.now() + 3_600_000).toISOString()
  const id = await publishAt(service.url, "/channels/news", { data: { n: 1 }, at })
  await until(
    async () => linesOf(service.output(), id),
    ({ length }) => length === 1
  )
  const now = { data: { at: new Date().toISOString() } }
  const moved = await call(service.url, "PATCH", broadcastPath(id), "publisher", now)
  assert.equal(moved.status, 200)
  await until(
    () => call(service.url, "GET", broadcastPath(id), "publisher"),
    ({ body }) => body.data.retrying === 1
  )
  for (const state of ["paused", "running", "cancelled"]) await changeState(service.url, id, state)
  await finishedAt(service.url, broadcastPath(id))
  const changes = ["cancelled", "changed", "finished", "paused"]
  changes.push("planned", "resumed", "scheduled", "started")
  const wanted = changes.map((change) => `broadcast ${change}`)
  const lines = await until(
    async () => linesOf(service.output(), id),
    ({ length }) => length >= wanted.length
  )
  assert.deepEqual(lines.map(({ msg }) => msg).sort(), wanted)
  for (const line of lines)
    assert.deepInclude(line, { publisher: idOf("publisher"), channel: "news" })
  const lineOf = (change: string) => lines.find(({ msg }) => msg === `broadcast ${change}`)
  assert.deepInclude(lineOf("planned"), { people: 1, shards: 1 })
  assert.deepInclude(lineOf("started"), { by: "schedule" })
  assert.deepInclude(lineOf("resumed"), { by: idOf("publisher"), accepted: 1 })

  const audit = ["audit", id, "--nats", nats.url]
  const { changes: audited } = JSON.parse((await runCli([...audit, "--json"])).stdout)
  const by = idOf("publisher")
  const who = audited.map((each: Record<string, unknown>) => [each["change"], each["by"]])
  assert.deepEqual(who, [
    ["scheduled", by],
    ["changed", by],
    ["started", "schedule"],
    ["paused", by],
    ["resumed", by],
    ["cancelled", by]
  ])
  const { stdout } = await runCli(audit)
  assert.include(stdout, `\npaused ${new Date(audited[3].at).toISOString()} by ${by}\n`)
})

it("a broadcast that is cancelled before its start has no line that it is planned", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats()
  await using service = await startService({ natsUrl: nats.url })
  const at = new Date(Date.now() + 3_600_000).toISOString()
  const id = await publishAt(service.url, "/channels/news", { data: { n: 1 }, at })
  await changeState(service.url, id, "cancelled")
  await finishedAt(service.url, broadcastPath(id))
  const lines = await until(
    async () => linesOf(service.output(), id),
    (all) => all.some(({ msg }) => msg === "broadcast finished")
  )
  const said = lines.map(({ msg }) => msg).sort()
  assert.deepEqual(said, ["broadcast cancelled", "broadcast finished", "broadcast scheduled"])
})
