// The owners of endpoints, as the lists of users and the pages of owners name them.
import { Effect, Layer, References } from "effect"
import { assert } from "vitest"
import { listsOf } from "#history/past.ts"
import { natsLayer } from "#nats/layer.ts"
import { rebuild } from "#rebuild/rebuild.ts"
import { isUserToken } from "#streams/tokens.ts"
import { until } from "./client.ts"
import { type administer, folded, foldingLayer } from "./history.ts"

/** Drops all log lines: the projector logs each of its failures. */
const silent = Layer.succeed(References.MinimumLogLevel, "None")

/**
 * The owners that lists name, and those that the index names, by the hash of the endpoint. A
 * subscription of an earlier owner, which must go, counts as one more.
 */
export const ownersIn = (entries: Readonly<Record<string, string>>) => {
  const lists: Array<readonly [string, string]> = []
  const pages: Array<readonly [string, string]> = []
  for (const [subject, text] of Object.entries(entries)) {
    const key = subject.replace("$KV.bellcast_subscriptions.", "")
    if (key === subject) continue
    const value = JSON.parse(text)
    if (key.startsWith("=endpoints.")) pages.push(...(Object.entries(value.owners) as typeof pages))
    else for (const id of Object.keys(value.subscriptions)) lists.push([id, key])
  }
  return { lists: lists.sort(), pages: pages.sort() }
}

type Admin = Awaited<ReturnType<typeof administer>>

export const onNats = (url: string) => Layer.merge(natsLayer({ url, name: "test" }), silent)

/** A list without what is known only while LOG has the put of another user. */
const own = (list: { readonly tombstones: object }): string =>
  JSON.stringify(list, (key, value) =>
    key === "generation" || key === "moved" ? undefined : value
  )

/** The list of each user is what the messages of that user and the facts about them say. */
const restOnOwn = (url: string, entries: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    for (const [subject, text] of Object.entries(entries)) {
      const user = subject.replace("$KV.bellcast_subscriptions.", "")
      if (!isUserToken(user)) continue
      const said = (yield* listsOf(user))(Number.POSITIVE_INFINITY)
      assert.equal(own(said), own(JSON.parse(text)))
    }
  }).pipe(Effect.provide(onNats(url)), Effect.runPromise)

/** Projects to the end. Then lists and pages name the same owners, and so does a rebuild. */
export const agree = async (url: string, admin: Admin) => {
  const agreed = () =>
    until(
      async () => ownersIn(await admin.entries()),
      ({ lists, pages }) => lists.length > 0 && JSON.stringify(lists) === JSON.stringify(pages)
    )
  await Effect.runPromise(
    Effect.andThen(folded(0), Effect.promise(agreed)).pipe(Effect.provide(foldingLayer(url)))
  )
  const before = await admin.entries()
  const { lists, pages } = ownersIn(before)
  assert.deepEqual(pages, lists)
  assert.lengthOf(new Set(lists.map(([id]) => id)), lists.length)
  await restOnOwn(url, before)
  await Effect.runPromise(rebuild().pipe(Effect.provide(onNats(url))))
  assert.deepEqual(await admin.entries(), before)
}
