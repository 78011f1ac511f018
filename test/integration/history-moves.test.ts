// Users who had one browser in turn: what the list of one rests on may be a put of the other, which
// goes as an old message, or by an erasure.
import { Effect, Layer } from "effect"
import { assert, describe, it } from "vitest"
import type { MessageBody, MessageType } from "#domain/messages/table.ts"
import { endpointHash } from "#domain/subscription/owners.ts"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import { until } from "../support/client.ts"
import { administer, folded, foldingLayer, quiet, rebuildAt } from "../support/history.ts"
import { userOf } from "../support/history-commands.ts"
import { startNats } from "../support/nats.ts"
import { differencesAt, trimAt } from "../support/trimmed.ts"

const [anna, bert] = [userOf(21), userOf(22)]
const endpoint = "https://push.example.com/shared"
const id = endpointHash(endpoint)

const append = Effect.fnUntraced(function* <T extends MessageType>(
  user: UserToken,
  type: T,
  body: MessageBody<T>
) {
  const { append: store } = yield* EventLog
  return (yield* store("log", { subject: subjects.subscription(user), type, body } as never)).seq
})
const put = (user: UserToken, at: number, more: object = {}) =>
  append(user, "subscription.put", {
    user: `user ${user}`,
    id,
    data: { endpoint, keys: { auth: "a", p256dh: "p" } },
    lastModified: at,
    ...more
  })
const of = (generation: number, at: number) => ({ id, generation, broadcast: 1, at })
const gone = (user: UserToken, generation: number, at: number) =>
  append(user, "subscription.gone", { ...of(generation, at), status: 410, cause: "gone" })
const struck = (user: UserToken, generation: number, at: number) =>
  append(user, "subscription.struck", {
    ...of(generation, at),
    ...{ cause: "unknown-host", worker: "w", strike: 1 }
  })
const remove = (user: UserToken, at: number) =>
  append(user, "subscription.delete", {
    user: `user ${user}`,
    removed: [{ id, lastModified: at }]
  })

/** Anna's and Bert's commands. All are in LOG before a projector can record a move. */
const turns = {
  "who takes it back": Effect.gen(function* () {
    yield* put(anna, 1_000, { renewal: "first" })
    yield* put(bert, 2_000)
    yield* put(anna, 3_000)
  }),
  "who takes it back until it is gone": Effect.gen(function* () {
    yield* put(anna, 1_000)
    yield* put(bert, 2_000)
    yield* gone(anna, yield* put(anna, 3_000), 4_000)
  }),
  "whose push finds it gone, and who takes it back": Effect.gen(function* () {
    const first = yield* put(anna, 1_000, { renewal: "first" })
    yield* put(bert, 2_000)
    yield* gone(anna, first, 2_500)
    yield* put(anna, 3_000)
  }),
  "whose push finds it gone": Effect.gen(function* () {
    const first = yield* put(anna, 1_000, { renewal: "first" })
    yield* put(bert, 2_000)
    yield* gone(anna, first, 3_000)
  }),
  "who removes it": Effect.gen(function* () {
    yield* put(anna, 1_000)
    yield* put(bert, 2_000)
    yield* remove(anna, 3_000)
  }),
  "whose push fails before the third takes it": Effect.gen(function* () {
    const first = yield* put(anna, 1_000)
    yield* put(bert, 2_000)
    yield* struck(anna, first, 2_500)
    yield* put(anna, 3_000)
    yield* put(userOf(23), 4_000)
  }),
  "of whom it was gone before, and who takes it back": Effect.gen(function* () {
    yield* gone(anna, yield* put(anna, 1_000, { renewal: "first" }), 1_500)
    yield* put(bert, 2_000)
    yield* put(anna, 3_000)
  }),
  "of whom it was gone before": Effect.gen(function* () {
    yield* gone(anna, yield* put(anna, 1_000, { renewal: "first" }), 1_500)
    yield* put(bert, 2_000)
  })
}

const startWith = async (commands: Effect.Effect<void, unknown, EventLog>) => {
  const nats = await startNats({ syncAlways: false })
  const { url } = nats
  const all = Effect.andThen(provision(1), commands)
  await Effect.runPromise(
    all.pipe(Effect.provide(Layer.merge(natsLayer({ url, name: "test" }), quiet)))
  )
  const admin = await administer(url)
  const close = async () => {
    await admin[Symbol.asyncDispose]()
    await nats[Symbol.asyncDispose]()
  }
  return {
    url,
    admin,
    /** Anna's list, without what is only known while the put of another user is. */
    list: async () => {
      const list = JSON.parse((await admin.entries())[`$KV.bellcast_subscriptions.${anna}`]!)
      for (const tombstone of Object.values<object | number>(list.tombstones))
        if (typeof tombstone === "object" && "isMoved" in tombstone)
          Object.assign(tombstone, { generation: 0, moved: 0 })
      return list
    },
    [Symbol.asyncDispose]: close
  }
}
type Store = Awaited<ReturnType<typeof startWith>>

/** Runs projector and tally until they have stored all, and what the projector appended, too. */
const fold = ({ url }: Store) =>
  Effect.andThen(folded(0), folded(0)).pipe(Effect.provide(foldingLayer(url)), Effect.runPromise)

const erase = ({ admin, url }: Store, user: UserToken) =>
  Effect.gen(function* () {
    const { append: store } = yield* EventLog
    yield* store("log", { subject: subjects.erase(user), type: "user.erase", body: { at: 9 } })
    const fact = { last_by_subj: subjects.erased(user) }
    const find = () => admin.jsm.streams.getMessage("BELLCAST_LOG", fact).catch(() => null)
    yield* Effect.promise(() => until(find, (found) => found !== null))
    yield* folded(0)
  }).pipe(Effect.provide(foldingLayer(url)), Effect.runPromise)

describe("the list of a user", { timeout: 60_000 }, () => {
  it.each(Object.entries(turns))("%s stays when the other one is erased", async (_, commands) => {
    await using store = await startWith(commands)
    await fold(store)
    const before = await store.list()
    assert.deepEqual(await differencesAt(store.url), [])
    await erase(store, bert)
    const bodies = Object.values(await store.admin.entries()).join()
    assert.notInclude(bodies, bert, "an entry")
    assert.deepEqual(await differencesAt(store.url), [])
    await rebuildAt(store.url)
    assert.deepEqual(await store.list(), before)
    assert.deepEqual(await differencesAt(store.url), [])
  })

  it("would be another one without the facts", async () => {
    await using store = await startWith(turns["who takes it back"])
    await fold(store)
    const before = await store.list()
    await erase(store, bert)
    const { jsm } = store.admin
    const { state } = await jsm.streams.info("BELLCAST_LOG", { subjects_filter: filters.taken })
    const [fact, ...others] = Object.keys(state.subjects ?? {})
    assert.isEmpty(others)
    const { seq } = (await jsm.streams.getMessage("BELLCAST_LOG", { last_by_subj: fact! }))!
    await jsm.streams.deleteMessage("BELLCAST_LOG", seq)
    assert.isNotEmpty(await differencesAt(store.url))
    await rebuildAt(store.url)
    assert.notDeepEqual(await store.list(), before)
  })

  it.each(Object.entries(turns))("%s stays when old messages go", async (_, commands) => {
    await using store = await startWith(commands)
    await fold(store)
    const { subscriptions } = await store.list()
    await trimAt(store.url)
    assert.deepEqual(await differencesAt(store.url), [])
    await rebuildAt(store.url)
    assert.deepEqual((await store.list()).subscriptions, subscriptions)
    assert.deepEqual(await differencesAt(store.url), [])
  })
})
