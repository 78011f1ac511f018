// Old messages of users who had one browser in turn: what the list of one rests on may be a put of
// the other.
import { Effect, Layer } from "effect"
import { assert, it } from "vitest"
import { endpointHash } from "#domain/subscription/owners.ts"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import { administer, folded, foldingLayer, quiet, rebuildAt } from "../support/history.ts"
import { userOf } from "../support/history-commands.ts"
import { startNats } from "../support/nats.ts"
import { differencesAt, trimAt } from "../support/trimmed.ts"

it("keeps what the generation of a browser rests on that two users had in turn", async () => {
  await using nats = await startNats({ syncAlways: false })
  const [anna, bert] = [userOf(21), userOf(22)]
  const endpoint = "https://push.example.com/shared"
  const id = endpointHash(endpoint)
  const put = Effect.fnUntraced(function* (user: UserToken, at: number) {
    const data = { endpoint, keys: { auth: "a", p256dh: "p" } }
    const body = { user: `user ${user}`, id, data, lastModified: at }
    const subject = subjects.subscription(user)
    const { append } = yield* EventLog
    return yield* append("log", { subject, type: "subscription.put", body })
  })
  // Anna has it back before a projector could record that it had moved.
  const back = await Effect.runPromise(
    Effect.gen(function* () {
      yield* provision(1)
      yield* put(anna, 1_000)
      yield* put(bert, 2_000)
      return yield* put(anna, 3_000)
    }).pipe(Effect.provide(Layer.merge(natsLayer({ url: nats.url, name: "test" }), quiet)))
  )
  const gone = Effect.gen(function* () {
    yield* folded(0)
    const { append } = yield* EventLog
    const why = { broadcast: 1, status: 410, cause: "gone", at: 4_000 } as const
    const body = { id, generation: back.seq, ...why }
    const subject = subjects.subscription(anna)
    yield* append("log", { subject, type: "subscription.gone", body })
    yield* folded(0)
  })
  await Effect.runPromise(gone.pipe(Effect.provide(foldingLayer(nats.url))))
  assert.deepEqual(await differencesAt(nats.url), [])
  await trimAt(nats.url)
  assert.deepEqual(await differencesAt(nats.url), [])
  await rebuildAt(nats.url)
  await using admin = await administer(nats.url)
  const list = JSON.parse((await admin.entries())[`$KV.bellcast_subscriptions.${anna}`]!)
  assert.deepEqual(list.subscriptions, {})
}, 60_000)
