// Rights to change a broadcast: those of now, not those of its acceptance. Whoever published it may
// always stop it, and change its start and its rate.
import { assert, it } from "vitest"
import {
  broadcastPath,
  changeState,
  changesOfData,
  patchState,
  resultOf
} from "../support/broadcast-states.ts"
import { call, publish, publishAt } from "../support/client.ts"
import { permit as permitAt } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"
import { inHours } from "../support/times.ts"
import { useService } from "../support/use-service.ts"
import { idOf } from "../support/users.ts"

const env = {
  BELLCAST_CHANNEL_WRITE_PRINCIPALS: `other=${idOf("nobody")}`,
  BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher")
}
/** Without the planner no broadcast ends by itself. */
const shared = useService({ roles: "gateway,projection", env })

const permit = (verb: "grant" | "revoke", channel: string, user: string) =>
  permitAt(shared.nats.url, verb, channel, user)

const at = inHours(1)
const changes = [{ at: inHours(2) }, { rate: 9 }, ...changesOfData]
const users = [idOf("anna")]

const patch = (url: string, id: string, data: object) =>
  call(url, "PATCH", broadcastPath(id), "publisher", { data })

it("a publisher who lost a right changes a broadcast, but not its data", {
  timeout: 60_000
}, async () => {
  const { nats, service } = shared
  // A gateway with later settings, without the right to name users.
  const later = { ...env, BELLCAST_USER_WRITE_PRINCIPALS: "" }
  await using strict = await startService({ natsUrl: nats.url, roles: "gateway", env: later })
  for (const channel of ["news", "sport"]) await permit("grant", channel, "publisher")
  const to = { channels: ["news", "sport"] }
  const ids = [
    await publishAt(service.url, "/channels/sport", { data: { n: 1 }, at }),
    await publishAt(service.url, "/broadcasts", { data: { n: 1 }, at, to })
  ]
  const named = await publishAt(service.url, "/broadcasts", { data: { n: 1 }, at, to: { users } })
  for (const id of [...ids, named])
    for (const data of changes) assert.equal(resultOf(await patch(service.url, id, data)), 200)
  await permit("revoke", "sport", "publisher")
  for (const [url, id] of [...ids.map((id) => [service.url, id] as const), [strict.url, named]]) {
    const before = (await call(url!, "GET", broadcastPath(id!), "publisher")).body.data
    for (const data of changesOfData)
      assert.deepEqual(resultOf(await patch(url!, id!, data)), [403, 121], JSON.stringify(data))
    const { body } = await call(url!, "GET", broadcastPath(id!), "publisher")
    assert.deepEqual(body.data, before)
    for (const data of [{ at: inHours(3) }, { rate: 8 }])
      assert.equal(resultOf(await patch(url!, id!, data)), 200, JSON.stringify(data))
    await changeState(url!, id!, "cancelled")
  }
})

it("a broadcast changes its state for its publisher, right or not, and for who may publish it", {
  timeout: 60_000
}, async () => {
  const { url } = shared.service
  for (const channel of ["art", "books"]) await permit("grant", channel, "publisher")
  for (const channel of ["art", "books"]) await permit("grant", channel, "editor")
  await permit("grant", "art", "partial")
  const to = { channels: ["art", "books"] }
  const ids = [
    await publish(url, "books", { n: 1 }),
    await publishAt(url, "/broadcasts", { data: { n: 2 }, to })
  ]
  for (const channel of to.channels) await permit("revoke", channel, "publisher")
  for (const id of ids)
    for (const state of ["paused", "running", "cancelled"]) {
      const states = ["other", "partial", "publisher", "editor"].map(async (user) => {
        const { status } = await patchState(url, id, state, user)
        return [user, status]
      })
      const expected = { other: 404, partial: 404, publisher: 200, editor: 200 }
      assert.deepEqual(Object.fromEntries(await Promise.all(states)), expected, state)
    }
})
