// An import that is repeated with other channels: it registers those whose subscriptions have no
// user yet.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, channelsOf, finished, publish } from "../support/client.ts"
import {
  formerBrowser,
  formerKeys,
  formerPair,
  importAll,
  importLines,
  makeFiles,
  settingsOn
} from "../support/imports.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { type Service, startService } from "../support/service.ts"
import { idOf } from "../support/users.ts"

let nats: TestNats
let admin: NatsAdmin
let push: PushService
let service: Service
const files = makeFiles()

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  admin = await connectAdmin(nats.url)
  push = await startPushService()
  service = await startService({ natsUrl: nats.url, env: formerKeys })
}, 60_000)
afterAll(async () => {
  files[Symbol.dispose]()
  for (const each of [service, push, admin, nats]) await each?.[Symbol.asyncDispose]()
})

const browser = () => formerBrowser(push).subscription
const accepted = async (channel: string) =>
  (await finished(service.url, channel, await publish(service.url, channel, { n: 1 }))).accepted

describe("a repeated import", { timeout: 60_000 }, () => {
  it("registers on channels that the first one forgot", async () => {
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
    const file = files.of([browser()])
    const env = { ...settingsOn(nats.url), BELLCAST_REGISTRATIONS_PER_USER_MAX: "2" }
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
