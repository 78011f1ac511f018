// An erasure goes on where a killed service left it, and a killed nats-server brings nothing back;
// in a cluster, too.
import { jetstream } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { Effect, Fiber, Layer } from "effect"
import { assert, describe, it } from "vitest"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { projectionLayer } from "#projection/projector.ts"
import { call, until } from "../support/client.ts"
import { inFiles, messagesOf } from "../support/erased.ts"
import { temporaryFolder } from "../support/folder.ts"
import { quiet } from "../support/history.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { makeNatsCluster } from "../support/nats-cluster.ts"
import { startPushService } from "../support/push-service.ts"
import { allIsSaved } from "../support/registration-entries.ts"
import { runCli } from "../support/run-cli.ts"
import { secretEnvironment, startService } from "../support/service.ts"
import { idOf, tokenOf } from "../support/users.ts"

const needle = "nEEdle0fAPerson"
const channels = Array.from({ length: 30 }, (_, n) => `news${n}`)
const isOk = ({ status }: { readonly status: number }) => status >= 200 && status < 300

const request = (url: string, method: string, path: string, user: string, body?: unknown) =>
  until(() => call(url, method, path, user, body), isOk, 100_000)

/** A user with a browser that was stored several times, on many channels with another user. */
const prepare = async (url: string, subscription: object) => {
  const data = { ...subscription, label: needle }
  const { id } = (await request(url, "POST", "/subscriptions", "ann", { data })).body.data
  for (let n = 0; n < 4; n++)
    await request(url, "PUT", `/subscriptions/${id}`, "ann", { data: { ...data, n } })
  for (const user of ["ann", "bob"])
    for (const channel of channels)
      await request(url, "PUT", `/channels/${channel}/registration`, user)
}

const isErased = (admin: NatsAdmin) =>
  until(
    () =>
      admin.jsm.streams
        .getMessage("BELLCAST_LOG", { last_by_subj: `bellcast.evt.erased.${tokenOf("ann")}` })
        .catch(() => null),
    (fact) => fact !== null,
    150_000
  )

const left = (admin: NatsAdmin) =>
  messagesOf(admin, [needle, idOf("ann"), tokenOf("ann")]).then((all) =>
    all.map(({ subject }) => subject)
  )

/** The fact, and the empty list. */
const onlyThat = [
  `bellcast.evt.erased.${tokenOf("ann")}`,
  `$KV.bellcast_subscriptions.${tokenOf("ann")}`
]

const verify = async (url: string) => {
  const { code, stderr, stdout } = await runCli(["verify", "--nats", url], secretEnvironment)
  assert.deepEqual([code, stderr], [0, ""], stdout)
}

/** Runs a projector that deletes nothing from LOG. Returns what ends it. */
const projectAt = (url: string) => {
  const deletingNothing = Layer.effect(
    EventLog,
    Effect.map(EventLog, (own) => EventLog.of({ ...own, remove: () => Effect.never }))
  ).pipe(Layer.provideMerge(natsLayer({ url, name: "test" })))
  const fiber = Effect.runFork(
    Layer.launch(projectionLayer).pipe(Effect.provide(Layer.provideMerge(deletingNothing, quiet)))
  )
  return () => Effect.runPromise(Fiber.interrupt(fiber))
}

describe("an erasure", { timeout: 400_000 }, () => {
  it("goes on where a killed service left it, and nothing comes back", async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    let service = await startService({ natsUrl: nats.url })
    try {
      await prepare(service.url, push.subscribe().subscription)
      await request(service.url, "DELETE", "/", "ann")
      for (let round = 0; round < 4; round++) {
        await service.kill()
        service = await startService({ natsUrl: nats.url })
        await request(service.url, "PUT", "/channels/round/registration", `user${round}`)
      }
      await using admin = await connectAdmin(nats.url)
      await isErased(admin)
      assert.deepEqual(await left(admin), onlyThat)
      await verify(nats.url)
      await nats.kill()
      await nats.restart()
      await request(service.url, "PUT", "/channels/round/registration", "last")
      await using again = await connectAdmin(nats.url)
      assert.deepEqual(
        await until(
          () => left(again),
          (found) => found.length === onlyThat.length
        ),
        onlyThat
      )
      await verify(nats.url)
    } finally {
      await service[Symbol.asyncDispose]()
    }
  })

  it("is completed where a crash came between the fact and the end of the command", async () => {
    await using nats = await startNats()
    await using admin = await connectAdmin(nats.url)
    const first = await startService({ natsUrl: nats.url })
    await first[Symbol.asyncDispose]()
    const stopped = projectAt(nats.url)
    const typed = headers()
    typed.set("Bellcast-Type", "user.erase/1")
    const asked = `bellcast.cmd.erase.${tokenOf("ann")}`
    const body = JSON.stringify({ at: Date.now() })
    await jetstream(admin.nc).publish(asked, body, { headers: typed })
    await isErased(admin)
    await allIsSaved(admin)
    await stopped()
    assert.include(await left(admin), asked)
    await using _service = await startService({ natsUrl: nats.url })
    assert.deepEqual(
      await until(
        () => left(admin),
        (found) => !found.includes(asked),
        100_000
      ),
      onlyThat
    )
    const facts = await messagesOf(admin, [`bellcast.evt.erased.${tokenOf("ann")}`])
    assert.lengthOf(facts, 1)
  })

  it("leaves nothing on three servers that can be read", async () => {
    const folders = await Promise.all([0, 1, 2].map(() => temporaryFolder()))
    const { start, urls } = await makeNatsCluster({ folders })
    const servers = await Promise.all(urls.map((_, n) => start(n)))
    try {
      await using push = await startPushService()
      await using service = await startService({ natsUrl: urls.join() })
      await prepare(service.url, push.subscribe().subscription)
      const before = folders.map((folder) => inFiles(folder, needle))
      await request(service.url, "DELETE", "/", "ann")
      await using admin = await connectAdmin(urls[0]!)
      await isErased(admin)
      assert.deepEqual(await left(admin), onlyThat)
      await verify(urls.join())
      for (const [n, folder] of folders.entries())
        console.log(`files of server ${n + 1}:`, before[n], "then", inFiles(folder, needle))
    } finally {
      await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()))
    }
  })
})
