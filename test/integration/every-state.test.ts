// Each state that a broadcast can have, wherever broadcasts are shown or found by it, and how many
// people it goes to where no worker runs.
import { jetstream } from "@nats-io/jetstream"
import { assert, describe, it } from "vitest"
import { BroadcastState } from "#domain/broadcast-state.ts"
import { patchState, untilShown } from "../support/broadcast-states.ts"
import { call, join, publishAt, until } from "../support/client.ts"
import { follow } from "../support/events.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"
import { useShared } from "../support/use-service.ts"
import { tokenOf } from "../support/users.ts"

const at = new Date(Date.now() + 3_600_000).toISOString()
const people = 3

/** What a broadcast in each state shows beside its state. */
const wanted: Readonly<Record<BroadcastState, object>> = {
  // Before anybody is registered: there is nobody to send to.
  finished: { finished: true, people: 0 },
  running: { finished: false, people, accepted: 0 },
  scheduled: { finished: false, at },
  paused: { finished: false, people },
  cancelled: { people },
  rejected: { finished: true, rejected: "not JSON" }
}

type Ids = Readonly<Record<BroadcastState, string>>

/** No process delivers, so what was planned stays as it is. */
const shared = useShared(async (opened) => {
  const nats = opened.use(await startNats({ syncAlways: false }))
  const push = opened.use(await startPushService())
  const env = {
    BELLCAST_ROLES: "gateway,projection,fanout,tally",
    BELLCAST_OPERATOR_PRINCIPALS: "nats:support"
  }
  const service = opened.use(await startService({ natsUrl: nats.url, env }))
  const admin = opened.use(await connectAdmin(nats.url))
  const { url } = service
  const published = (more: object = {}) =>
    publishAt(url, "/channels/news", { data: { n: 1 }, ...more })
  const finished = await published()
  await untilShown(url, finished, (broadcast) => broadcast.state === "finished")
  const agents = Array.from({ length: people }, () => push.subscribe().subscription)
  await join([url], "news", agents)
  const { seq } = await jetstream(admin.nc).publish("bellcast.cmd.broadcast.billing.news", "?")
  const ids: Ids = {
    finished,
    running: await published(),
    scheduled: await published({ at }),
    paused: await published(),
    cancelled: await published(),
    rejected: String(seq)
  }
  for (const state of ["running", "paused", "cancelled"] as const) {
    await untilShown(url, ids[state], (broadcast) => broadcast.people === people)
    if (state !== "running") await patchState(url, ids[state], state)
  }
  for (const state of BroadcastState.literals)
    await untilShown(url, ids[state], (broadcast) => broadcast?.state === state)
  return { nats, service, nc: admin.nc, ids }
})

const verb = async (...args: ReadonlyArray<string>) => {
  const { code, stderr, stdout } = await runCli([...args, "--nats", shared.nats.url])
  assert.equal(code, 0, stderr)
  return stdout
}
const jsonLines = (text: string) =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))

const got = async (path: string) => {
  const { body, status } = await call(shared.service.url, "GET", path, "publisher")
  assert.equal(status, 200, JSON.stringify(body))
  return body.data
}

const requested = async (operation: string, body: object) =>
  JSON.parse(
    (
      await shared.nc.request(`bellcast.api.support.${operation}`, JSON.stringify(body), {
        timeout: 15_000
      })
    ).string()
  ).data

describe("a broadcast in each state", { timeout: 60_000 }, () => {
  it.each(BroadcastState.literals)("is shown and found: %s", async (state) => {
    const { ids, service } = shared
    const id = ids[state]
    const all = { id, state, ...wanted[state] }

    const shown = await got(`/broadcasts/${id}`)
    assert.deepInclude(shown, all)
    assert.deepInclude(await requested("broadcast", { broadcast: id }), all)
    assert.deepInclude(JSON.parse(await verb("broadcast", "show", id, "--json")), all)
    const events = await follow(`${service.url}/broadcasts/${id}/events`)
    await until(
      async () => events.events,
      ({ length }) => length > 0
    )
    events.close()
    assert.deepInclude(events.events[0]?.data, all)

    const found = [
      await got(`/broadcasts?state=${state}`),
      await got(`/channels/news/broadcasts?state=${state}`),
      await requested("broadcasts", { state }),
      jsonLines(await verb("broadcast", "list", "--json", "--state", state))
    ]
    for (const list of found) {
      assert.deepEqual(
        list.map((each: { id: string }) => each.id),
        [id]
      )
      assert.deepInclude(list[0], all)
    }

    const audit = JSON.parse(await verb("audit", id, "--json"))
    assert.equal(audit.state, state)
    assert.equal(audit.accepted_at, shown.accepted_at)
    const { expires_at, people, shards_done } = shown
    // Only what was planned has these.
    if (audit.people !== undefined) assert.deepInclude(audit, { expires_at, people, shards_done })
    const refused = await patchState(service.url, id, "running")
    if (!["running", "paused"].includes(state))
      assert.deepEqual([refused.status, refused.body.details], [409, { state }])
    if (state === "paused") await patchState(service.url, id, "paused")
  })

  it("stands in the tables of people, with its start and the people it goes to", async () => {
    const { ids } = shared
    const rowOf = (table: string, id: string) =>
      table.split("\n").find((line) => new RegExp(`^ *${id} `).test(line))
    const tables = [await verb("broadcast", "list"), await verb("channel", "show", "news")]
    for (const table of tables)
      assert.match(table, /^BROADCAST +STATE +STARTS +PEOPLE +PUSHES +DELIVERED/m)
    const [listed] = tables
    for (const state of BroadcastState.literals)
      assert.match(rowOf(listed!, ids[state])!, new RegExp(`^ *\\d+ +${state} `))
    assert.match(rowOf(listed!, ids.running)!, /Z +3 +0 +0 +0 +- +- +news /)
    assert.match(rowOf(listed!, ids.scheduled)!, new RegExp(`${at} +- +0 `))
    assert.include(await verb("audit", ids.running), "; running, 0 of 1 shards done, planned for 3")
    assert.match(await verb("audit", ids.scheduled), new RegExp(`, starts ${at}\nscheduled\n`))
    assert.match(await verb("audit", ids.rejected), /\nrejected: /)
    const user = await verb("audit", "--user", tokenOf("user0"))
    for (const state of ["running", "scheduled", "paused", "cancelled"] as const)
      assert.include(rowOf(user, ids[state]), ` ${state} `)
  })
})
