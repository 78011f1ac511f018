// Erasures that a command asks for: none is asked for twice, and a registration with which the user
// comes back meanwhile stays.
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Fiber, Layer } from "effect"
import { assert, describe, it } from "vitest"
import { eraseAll } from "#cli/nats/erase.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { endRegistrations } from "#projection/erase.ts"
import { readErased } from "#projection/erased-list.ts"
import { projectionLayer } from "#projection/projector.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { until } from "../support/client.ts"
import { temporaryFolder } from "../support/folder.ts"
import { folded, foldingLayer, quiet } from "../support/history.ts"
import { userOf } from "../support/history-commands.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { runCli } from "../support/run-cli.ts"
import { secretEnvironment, startService } from "../support/service.ts"

const clientOf = (url: string) => Layer.merge(natsLayer({ url, name: "test" }), quiet)
const user = userOf(50)
const place = subjects.registration(channelToken("news"), user)
const change = (type: "registration.put" | "registration.delete", at: number) =>
  Effect.flatMap(EventLog, ({ append }) =>
    append("log", { subject: place, type, body: { user: "user 50", at } })
  )

/** Sequence, type and body of the last message of LOG on a subject. */
const lastOn = async ({ jsm }: NatsAdmin, subject: string) => {
  const found = await jsm.streams
    .getMessage("BELLCAST_LOG", { last_by_subj: subject })
    .catch(() => null)
  return found && { seq: found.seq, type: found.header.get("Bellcast-Type"), body: found.string() }
}

/** A store in which the user has a registration, and no projector runs. Returns its sequence. */
const withRegistration = (url: string) =>
  Effect.gen(function* () {
    const { seq } = yield* change("registration.put", 1)
    yield* folded(0)
    return seq
  }).pipe(Effect.provide(foldingLayer(url)), Effect.runPromise)

describe("an erasure that a command asks for", { timeout: 120_000 }, () => {
  it("does not end a registration with which the user came back", async () => {
    await using nats = await startNats({ syncAlways: false })
    await using admin = await connectAdmin(nats.url)
    const began = await withRegistration(nats.url)
    // The buckets still show the former registration.
    const ended = Effect.gen(function* () {
      const before = (yield* change("registration.delete", 2)).seq
      yield* change("registration.put", 3)
      return yield* endRegistrations(user, before)
    })
    assert.equal(await Effect.runPromise(ended.pipe(Effect.provide(clientOf(nats.url)))), 0)
    const last = await lastOn(admin, place)
    assert.isAbove(last!.seq, began)
    assert.equal(last!.type, "registration.put/1")
  })

  it("ends the registrations of the user before", async () => {
    await using nats = await startNats({ syncAlways: false })
    await using admin = await connectAdmin(nats.url)
    await withRegistration(nats.url)
    const deletingNothing = Layer.effect(
      EventLog,
      Effect.map(EventLog, (own) => EventLog.of({ ...own, remove: () => Effect.never }))
    ).pipe(Layer.provideMerge(clientOf(nats.url)))
    const projector = projectionLayer.pipe(Layer.provideMerge(deletingNothing))
    const fiber = Effect.runFork(eraseAll([user]).pipe(Effect.provide(projector)))
    const command = await until(
      () => lastOn(admin, subjects.erase(user)),
      (found) => found !== null
    )
    const end = await lastOn(admin, place)
    await Effect.runPromise(Fiber.interrupt(fiber))
    assert.equal(end!.type, "registration.delete/1")
    assert.isBelow(end!.seq, command!.seq)
  })

  it("shares the reading of all letters and drafts with those that wait beside it", async () => {
    await using nats = await startNats({ syncAlways: false })
    await withRegistration(nats.url)
    let scans = 0
    const counting = Layer.effect(
      EventLog,
      Effect.map(EventLog, (own) =>
        EventLog.of({
          ...own,
          scan: (stream, wanted, ...rest) => {
            if (wanted.includes(filters.drafts)) scans++
            return own.scan(stream, wanted, ...rest)
          }
        })
      )
    ).pipe(Layer.provideMerge(clientOf(nats.url)))
    const projector = projectionLayer.pipe(Layer.provideMerge(counting))
    const users = Array.from({ length: 12 }, (_, n) => userOf(60 + n))
    const facts = await Effect.runPromise(eraseAll(users).pipe(Effect.provide(projector)))
    assert.lengthOf(facts, 12)
    assert.isAtMost(scans, 4)
  })

  it("is not asked for again while LOG has the command of an earlier run", async () => {
    await using nats = await startNats()
    await using admin = await connectAdmin(nats.url)
    const first = await startService({ natsUrl: nats.url })
    await first[Symbol.asyncDispose]()
    const list = join(await temporaryFolder(), "erased.jsonl")
    const users = [userOf(51), userOf(52)]
    const lines = users.map((user) => JSON.stringify({ user, at: "2026-01-01T00:00:00.000Z" }))
    writeFileSync(list, lines.join("\n"))
    const args = ["user", "erase", "--repeat", list, "--nats", nats.url]
    assert.include((await runCli(args, secretEnvironment)).stderr, "no projection runs")
    const commands = await Promise.all(users.map((each) => lastOn(admin, subjects.erase(each))))
    const read = readErased(list).pipe(Effect.provide(clientOf(nats.url)))
    const { asked } = await Effect.runPromise(read)
    assert.deepEqual(
      users.map((each) => asked.get(each)),
      commands.map((each) => each!.seq)
    )
    const projector = projectionLayer.pipe(Layer.provideMerge(clientOf(nats.url)))
    await Effect.runPromise(eraseAll(users, asked).pipe(Effect.provide(projector)))
    for (const [n, each] of users.entries()) {
      const fact = await lastOn(admin, subjects.erased(each))
      assert.equal(JSON.parse(fact!.body).command, commands[n]!.seq)
    }
  })
})
