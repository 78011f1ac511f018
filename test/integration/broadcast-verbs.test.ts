// `bellcast broadcast list` and `show`, and where what they show is read from.
import { assert, it } from "vitest"
import { changeState } from "../support/broadcast-states.ts"
import { finished, join, publish, publishAt, until } from "../support/client.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { spawnCli } from "../support/spawn-cli.ts"
import { useService } from "../support/use-service.ts"
import { idOf } from "../support/users.ts"

interface Row {
  readonly accepted_at: number
  readonly id: string
  readonly state: string
  readonly publisher: string
  readonly to: { readonly channels: ReadonlyArray<string> }
  readonly delivered: number
}

const shared = useService({ env: { BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher") } })

// The first: it wants no other broadcasts.
it("lists and shows broadcasts from NATS, the newest first", { timeout: 60_000 }, async () => {
  const { nats, service } = shared
  await using push = await startPushService()
  const verb = async (...args: ReadonlyArray<string>) => {
    const { code, stderr, stdout } = await runCli(["broadcast", ...args, "--nats", nats.url])
    assert.equal(code, 0, stderr)
    return stdout
  }
  assert.include(await verb("list"), "no broadcasts")
  await join([service.url], "news", [push.subscribe().subscription])
  const ids: Array<string> = []
  for (const channel of ["news", "other", "news"])
    ids.unshift(await publish(service.url, channel, { n: 1 }))
  for (const [i, channel] of ["news", "other", "news"].entries())
    await finished(service.url, channel, ids[2 - i]!)
  const rows = async (...args: ReadonlyArray<string>): Promise<ReadonlyArray<Row>> =>
    (await verb("list", "--json", ...args))
      .trim()
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line))
  const all = await until(
    () => rows(),
    (found) => found.length === 3
  )
  assert.deepEqual(
    all.map(({ id }) => id),
    ids
  )
  assert.deepInclude(all[0], { state: "finished", publisher: idOf("publisher"), delivered: 1 })
  assert.deepEqual(all[1]!.to.channels, ["other"])
  const idsOf = async (...args: ReadonlyArray<string>) => (await rows(...args)).map(({ id }) => id)
  assert.deepEqual(await idsOf("--channel", "news"), [ids[0], ids[2]])
  const cut = await rows("--limit", "2")
  const end = { more: true, before: new Date(all[1]!.accepted_at + 1).toISOString() }
  assert.deepEqual([...cut.slice(0, 2).map(({ id }) => id), cut[2]], [...ids.slice(0, 2), end])
  assert.deepEqual(await idsOf("--before", end.before), ids.slice(1))
  assert.match(await verb("list", "--limit", "2"), /\n2 or more: --before 20\S+Z, or a larger/)
  assert.deepEqual(await idsOf("--publisher", idOf("somebody")), [])
  assert.deepEqual(await idsOf("--state", "running"), [])
  assert.deepEqual(await idsOf("--since", new Date(Date.now() + 60_000).toISOString()), [])
  assert.deepEqual(await idsOf("--before", new Date(Date.now() - 60_000).toISOString()), [])
  assert.match(await verb("list"), /^BROADCAST {2}STATE {5}STARTS/)
  const single = JSON.parse(await verb("show", ids[0]!, "--json"))
  assert.deepInclude(single, all[0])
  assert.deepEqual(single.reasons, { accepted: 1 })
  const text = await verb("show", ids[0]!)
  assert.match(text, /^delivered +1$/m)
  assert.match(text, /^REASON {4}PUSHES\naccepted +1$/m)
  assert.match(text, /^PUSH SERVICE {2}DELIVERED .* P99 MS\nother +1 +0 +0 +0 +0 +0 +\d+ +\d+$/m)
  const empty = await verb("show", ids[1]!)
  for (const word of ["[object", "REASON", "PUSH SERVICE"]) assert.notInclude(empty, word)
  const to = { channels: ["other"], users: [idOf("a")], except_users: [idOf("b"), idOf("c")] }
  const excepting = await publishAt(service.url, "/broadcasts", { data: { n: 1 }, to })
  assert.match(await verb("show", excepting), /^to +other, 1 user, except 2$/m)
})

it("watches a broadcast until it is finished, or fails when it is cancelled or ended itself", {
  timeout: 60_000
}, async () => {
  const { nats, service } = shared
  await using push = await startPushService()
  const watch = (id: string, ...args: ReadonlyArray<string>) =>
    runCli(["broadcast", "watch", id, ...args, "--nats", nats.url])
  const slow = push.subscribe({ script: ["slow 2500", "503 retry-after 600"] })
  await join([service.url], "watched", [slow.subscription], 1, "watched")
  const sent = await publish(service.url, "watched", { n: 1 })
  const watched = await watch(sent, "--json")
  assert.equal(watched.code, 0, watched.stderr)
  const views = watched.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
  assert.include(
    views.map(({ state }) => state),
    "running"
  )
  assert.deepInclude(views.at(-1), { id: sent, state: "finished", accepted: 1, delivered: 1 })
  const stopped = await publish(service.url, "watched", { n: 2 })
  const watching = watch(stopped)
  await push.waitFor(() => slow.attempts.length === 2)
  for (const [signal, exitCode] of [
    ["hangUp", 129],
    ["interrupt", 130],
    ["terminate", 143]
  ] as const) {
    await using cli = await spawnCli(["broadcast", "watch", stopped, "--nats", nats.url])
    await cli.printed(/ 1 accepted/)
    cli[signal]()
    assert.equal(await cli.exit(), exitCode, cli.output.stderr)
  }
  await changeState(service.url, stopped, "cancelled")
  const { code, stderr, stdout } = await watching
  assert.equal(code, 1)
  assert.match(stdout, /^\S+Z {2}cancelled {2}1 person, 1 accepted, 1 cancelled$/m)
  assert.include(stderr, `broadcast ${stopped} was cancelled`)
})
