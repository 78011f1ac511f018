// Erasures that a command asks for: none is asked for twice, and a registration with which the user
// comes back meanwhile stays.
import { spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Fiber, Layer } from "effect"
import { assert, describe, it } from "vitest"
import { eraseAll } from "#cli/nats/erase.ts"
import { redrivesHeader } from "#domain/broadcast.ts"
import { emptyList } from "#domain/subscription/subscription.ts"
import { provision } from "#nats/admin/provision.ts"
import { Watermark } from "#nats/follower/watermark.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { endRegistrations } from "#projection/erase.ts"
import { readErased } from "#projection/erased-list.ts"
import { EndMillisMax } from "#projection/letters.ts"
import { projectionLayer } from "#projection/projector.ts"
import { keys } from "#streams/buckets.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { channelToken, directToken } from "#streams/tokens.ts"
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

/** Deletes no message of LOG, as where NATS forbids that. */
const deletingNothing = (url: string) =>
  Layer.effect(
    EventLog,
    Effect.map(EventLog, (own) => EventLog.of({ ...own, remove: () => Effect.never }))
  ).pipe(Layer.provideMerge(clientOf(url)))

const putOf = (lastModified: number, more: object = {}) => ({
  subject: subjects.subscription(user),
  type: "subscription.put" as const,
  body: {
    user: "user 50",
    id: "a".repeat(64),
    data: { endpoint: "https://push.example.com/50", keys: { auth: "a", p256dh: "p" } },
    lastModified,
    ...more
  }
})

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

  it("passes over what was decided before it, and is stored once the list is empty", async () => {
    await using nats = await startNats({ syncAlways: false })
    const projector = projectionLayer.pipe(Layer.provideMerge(deletingNothing(nats.url)))
    const replaces = { id: "b".repeat(64), lastModified: 4, renewal: "r".repeat(43) }
    const program = Effect.gen(function* () {
      const { append } = yield* EventLog
      const { reached } = yield* Watermark
      const listOf = Effect.map(
        Effect.flatMap(Buckets, ({ get }) => get("subscriptions", keys.subscriptions(user))),
        (entry) => entry?.value
      )
      // A renewal may be the first that LOG has of a user.
      yield* reached((yield* append("log", putOf(1, { replaces }))).seq, 10_000)
      assert.lengthOf(Object.keys((yield* listOf)!.subscriptions), 1)
      const erasure = { type: "user.erase", body: { at: 2 } } as const
      const erased = yield* append("log", { subject: subjects.erase(user), ...erasure })
      yield* reached(erased.seq, 10_000)
      for (const late of [{ restored: true }, { replaces }]) {
        yield* reached((yield* append("log", putOf(3, late))).seq, 10_000)
        assert.deepEqual(yield* listOf, emptyList)
      }
      yield* reached((yield* append("log", putOf(5))).seq, 10_000)
      assert.lengthOf(Object.keys((yield* listOf)!.subscriptions), 1, "the user comes back")
    })
    const provisioned = provision(1).pipe(Effect.provide(clientOf(nats.url)))
    await Effect.runPromise(provisioned)
    await Effect.runPromise(program.pipe(Effect.provide(projector)))
  })

  it("ends the registrations of the user before", async () => {
    await using nats = await startNats({ syncAlways: false })
    await using admin = await connectAdmin(nats.url)
    await withRegistration(nats.url)
    const projector = projectionLayer.pipe(Layer.provideMerge(deletingNothing(nats.url)))
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

  it("takes what was decided before it and stored after it, and redrives of letters", async () => {
    await using nats = await startNats({ syncAlways: false })
    await using admin = await connectAdmin(nats.url)
    const subject = subjects.subscription(user)
    const letters = subjects.broadcast("rest", directToken)
    const letter = { type: "direct", body: { data: { n: 1 }, users: [user] } } as const
    const before = Effect.gen(function* () {
      const { append } = yield* EventLog
      yield* append("log", putOf(1))
      const { seq } = yield* append("log", { subject: letters, ...letter })
      yield* append("log", { subject: subjects.erase(user), type: "user.erase", body: { at: 2 } })
      yield* append("log", putOf(3, { restored: true }))
      const replaces = { id: "b".repeat(64), lastModified: 4, renewal: "r".repeat(43) }
      yield* append("log", putOf(5, { replaces }))
      const headers = { [redrivesHeader]: String(seq) }
      const redrive = subjects.broadcast("redrive", directToken)
      yield* append("log", { subject: redrive, ...letter, headers })
    })
    await Effect.runPromise(
      Effect.andThen(provision(1), before).pipe(Effect.provide(clientOf(nats.url)))
    )
    // No process plans or sends the letters.
    const projector = projectionLayer.pipe(
      Layer.provideMerge(Layer.mergeAll(clientOf(nats.url), Layer.succeed(EndMillisMax, 3_000)))
    )
    const fiber = Effect.runFork(Effect.never.pipe(Effect.provide(projector)))
    const countOf = async (filter: string) => {
      const { state } = await admin.jsm.streams.info("BELLCAST_LOG", { subjects_filter: filter })
      return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0)
    }
    await until(
      () => countOf(subject),
      (count) => count === 0
    )
    assert.isAbove(await countOf(filters.broadcasts), 0, "letters go last")
    await until(
      () => lastOn(admin, subjects.erased(user)),
      (found) => found !== null
    )
    assert.equal(await countOf(filters.broadcasts), 0)
    await Effect.runPromise(Fiber.interrupt(fiber))
  })

  it("does not stop a restore of others while LOG still has what was before it", async () => {
    await using nats = await startNats({ syncAlways: false })
    const from = new Date(Date.now() - 60_000).toISOString()
    const before = Effect.gen(function* () {
      const { append } = yield* EventLog
      const { body, ...put } = putOf(1)
      const { seq: generation } = yield* append("log", { ...put, body })
      const gone = {
        id: body.id,
        generation,
        broadcast: 1,
        status: 410,
        cause: "gone",
        at: 2
      } as const
      yield* append("log", { ...put, type: "subscription.gone", body: gone })
      yield* append("log", { subject: subjects.erase(user), type: "user.erase", body: { at: 3 } })
      yield* folded(0)
    })
    await Effect.runPromise(before.pipe(Effect.provide(foldingLayer(nats.url))))
    const { code, stderr, stdout } = await runCli(["restore", "--from", from, "--nats", nats.url])
    assert.deepEqual([code, stderr], [0, ""])
    assert.match(stdout, /^0 subscriptions of 1 user were restored\n1 was not: .* meanwhile/)
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

  it("is listed by a command that keeps the former list where it fails", async () => {
    const document = readFileSync(new URL("../../.github/PRIVACY.md", import.meta.url), "utf8")
    const [, command = ""] = /^(bellcast user erased --json .*)$/m.exec(document) ?? []
    const cwd = await temporaryFolder()
    const list = join(cwd, "erased.jsonl")
    for (const [exit, said, left] of [
      ["false", "first", ""],
      ["true", "first", "first"],
      ["false", "second", "first"]
    ] as const) {
      writeFileSync(list, "", { flag: "a" })
      spawnSync("sh", ["-c", `bellcast() { printf ${said}; ${exit}; }; ${command}`], { cwd })
      assert.equal(readFileSync(list, "utf8"), left)
    }
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
