// An entry that an erasure or the end of the history took from the subscriptions stays away: a
// killed nats-server 2.15 brings overwritten values back whose key was removed since.
import { assert, it } from "vitest"
import { call, until } from "../support/client.ts"
import { messagesOf } from "../support/erased.ts"
import { rebuildAt } from "../support/history.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { allIsSaved } from "../support/registration-entries.ts"
import { startService } from "../support/service.ts"
import { differencesAt, trimAt } from "../support/trimmed.ts"
import { tokenOf } from "../support/users.ts"

const needle = "nEEdle0fAPerson"
const isOk = ({ status }: { readonly status: number }) => status >= 200 && status < 300

it.each(["a rebuild", "nothing"])(
  "is not in the bucket again after %s and a kill of nats-server",
  { timeout: 120_000 },
  async (between) => {
    await using nats = await startNats()
    await using push = await startPushService()
    const service = await startService({ natsUrl: nats.url })
    const request = (method: string, path: string, user: string, body?: unknown) =>
      until(() => call(service.url, method, path, user, body), isOk)
    try {
      for (const user of ["ann", "bob"]) {
        const { subscription } = push.subscribe()
        const data = { ...subscription, endpoint: `${subscription.endpoint}?${needle}` }
        const { id } = (await request("POST", "/subscriptions", user, { data })).body.data
        for (let n = 0; n < 4; n++)
          await request("PUT", `/subscriptions/${id}`, user, { data: { ...data, n } })
        await request("PUT", "/channels/news/registration", user)
        await request("DELETE", "/channels/news/registration", user)
      }
      await request("DELETE", "/subscriptions", "ann")
      await request("DELETE", "/", "bob")
      await using admin = await connectAdmin(nats.url)
      await until(
        () =>
          admin.jsm.streams
            .getMessage("BELLCAST_LOG", { last_by_subj: `bellcast.evt.erased.${tokenOf("bob")}` })
            .catch(() => null),
        (fact) => fact !== null
      )
      await allIsSaved(admin)
    } finally {
      await service[Symbol.asyncDispose]()
    }
    assert.isAbove(await trimAt(nats.url), 0)
    if (between === "a rebuild") await rebuildAt(nats.url)
    await nats.kill()
    await nats.restart()
    await using admin = await connectAdmin(nats.url)
    const left = await messagesOf(admin, [needle])
    assert.deepEqual(
      left.map(({ subject }) => subject),
      []
    )
    assert.deepEqual(await differencesAt(nats.url), [])
  }
)
