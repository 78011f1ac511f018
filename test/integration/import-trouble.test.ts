// An import that is repeated with other channels registers those whose subscriptions have no user
// yet. One that cannot do all it should says how far it came, and leaves nothing behind.
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { standInOf } from "#domain/subscription/command.ts"
import { endpointHash } from "#domain/subscription/owners.ts"
import { pseudonyms } from "#identity/principals.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { call, channelsOf, finished, publish, registrationsSeen, until } from "../support/client.ts"
import {
  formerBrowser,
  formerPair,
  importAll,
  importLines,
  settingsOn,
  useImports
} from "../support/imports.ts"
import { runCli } from "../support/run-cli.ts"
import { secretEnvironment } from "../support/service.ts"
import { idOf } from "../support/users.ts"

const shared = useImports()

const subscriptions = (count: number) =>
  Array.from({ length: count }, () => formerBrowser(shared.push).subscription)
const browser = () => formerBrowser(shared.push).subscription
const accepted = async (channel: string) => {
  const { url } = shared.service
  return (await finished(url, channel, await publish(url, channel, { n: 1 }))).accepted
}

describe("a repeated import", { timeout: 60_000 }, () => {
  it("registers on channels that the first one forgot", async () => {
    const { admin, nats, service } = shared
    const [unnamed, named, taken] = [browser(), browser(), browser()]
    const lines = [unnamed, { ...named, user: idOf("ann") }, taken]
    await importAll(nats.url, lines)
    const data = { ...taken, vapid_public_key: formerPair.publicKey }
    assert.equal((await call(service.url, "POST", "/subscriptions", "bob", { data })).status, 201)
    const again = () => importLines(nats.url, lines, "--channel", "forgotten")
    const ended = "1 were removed, taken by a user or gone since an earlier import"
    const said = `0 of 3 lines were stored\n2 were there already\n${ended}\n`
    assert.equal((await again()).stdout, said)
    assert.equal(await accepted("forgotten"), 1)
    // Users may have left the channel.
    for (const user of ["ann", "bob"]) assert.deepEqual(await channelsOf(service.url, user), [])
    const inLog = async () => (await admin.jsm.streams.info("BELLCAST_LOG")).state.last_seq
    const before = await inLog()
    assert.equal((await again()).stdout, said)
    assert.equal(await inLog(), before)
  })

  it("registers on no more channels than allowed, and leaves none", async () => {
    const file = shared.files.of([browser()])
    const env = { ...settingsOn(shared.nats.url), BELLCAST_REGISTRATIONS_PER_USER_MAX: "2" }
    const run = async (...channels: ReadonlyArray<string>) => {
      const flags = channels.flatMap((each) => ["--channel", each])
      const args = ["import", file, "--vapid-public-key", formerPair.publicKey, ...flags]
      return (await runCli(args, env)).stdout
    }
    assert.equal(await run("first", "second"), "1 of 1 lines were stored\n")
    const full = "1 are of users who have as much as they may"
    assert.equal(await run("third", "first"), `0 of 1 lines were stored\n${full}\n`)
    assert.deepEqual([await accepted("first"), await accepted("third")], [1, 0])
  })
})

describe("an import that cannot do all it should", { timeout: 60_000 }, () => {
  it("ends the registrations of a stand-in whose subscription a user has", async () => {
    const { nats, service } = shared
    const [data] = subscriptions(1)
    const standIn = standInOf(endpointHash(data!.endpoint))
    const token = pseudonyms(secretEnvironment.BELLCAST_USERID_HMAC_SECRET)(standIn)
    // The state after an import that was killed, or overtaken by the user, between its two steps.
    const began = {
      subject: subjects.registration(channelToken("lost"), token),
      type: "registration.put",
      body: { user: standIn, at: 1 }
    } as const
    await Effect.runPromise(
      Effect.flatMap(EventLog, (log) => log.append("log", began)).pipe(
        Effect.provide(natsLayer({ url: nats.url, name: "test" }))
      )
    )
    assert.equal((await call(service.url, "POST", "/subscriptions", "eve", { data })).status, 201)
    await call(service.url, "PUT", "/channels/lost/registration", "eve")
    const seen = () => registrationsSeen(service.url, "lost", "eve")
    assert.equal(await seen(), 2)
    const imports = (...args: ReadonlyArray<string>) =>
      importLines(nats.url, [data], "--channel", "lost", "--channel", "other", ...args)
    const held = "1 belong to another user\n"
    assert.equal((await imports("--dry-run")).stdout, `0 of 1 lines would be stored\n${held}`)
    assert.equal(await seen(), 2)
    assert.equal((await imports()).stdout, `0 of 1 lines were stored\n${held}`)
    await until(seen, (count) => count === 1)
  })

  it("fails where OneSignal's rows of browsers have no keys", async () => {
    const row = ({ endpoint }: { endpoint: string }) => ({ identifier: endpoint, web_auth: "" })
    const app = { identifier: "a1b2c3", invalid_identifier: "f" }
    const [one, other, good] = subscriptions(3)
    const rows = [row(one!), row(other!), { ...row(other!), invalid_identifier: "t" }, app]
    const { code, stderr, stdout } = await importLines(shared.nats.url, rows)
    const lack = "2 lack web_auth or web_p256"
    const rest = "2 are no Web Push, or unsubscribed"
    assert.equal(stdout, `0 of 4 lines were stored\n${rest}\n${lack}\n`)
    assert.include(stderr, "extra_fields")
    assert.equal(code, 1)
    const { code: some, stdout: said } = await importLines(shared.nats.url, [good, ...rows])
    assert.equal(said, `1 of 5 lines were stored\n${rest}\n${lack}\n`)
    assert.equal(some, 0)
  })

  // The last case: it ends the service.
  it("prints what it did before it failed", async () => {
    const [a, b, c] = subscriptions(3)
    await importAll(shared.nats.url, [a, b])
    await shared.service.kill()
    const { code, stderr, stdout } = await importLines(shared.nats.url, [a, b, c])
    assert.include(stderr, "no projection runs")
    assert.equal(code, 1)
    const open = "1 were not finished: repeat the import"
    assert.equal(stdout, `0 of 3 lines were stored\n2 were there already\n${open}\n`)
  })
})
