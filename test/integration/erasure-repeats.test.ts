// Each erasure leaves a fact in LOG for ever: so repeats share the one that is under way, and each
// other counts for its caller.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, until } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { type Service, startService } from "../support/service.ts"
import { idOf, tokenOf } from "../support/users.ts"

let nats: TestNats
let service: Service
let admin: NatsAdmin

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  const env = {
    BELLCAST_CHANGES_PER_USER_PER_HOUR_MAX: "4",
    BELLCAST_MEMBERS_PER_CALLER_PER_HOUR_MAX: "2",
    BELLCAST_USER_WRITE_PRINCIPALS: idOf("site")
  }
  service = await startService({ natsUrl: nats.url, env })
  admin = await connectAdmin(nats.url)
})
afterAll(async () => {
  for (const each of [admin, service, nats]) await each?.[Symbol.asyncDispose]()
})

const erase = (user: string) => call(service.url, "DELETE", "/", user)
const join = (user: string, channel = "news") =>
  call(service.url, "PUT", `/channels/${channel}/registration`, user)

/** How many messages LOG has of a user's erasures: commands, or facts. */
const messagesOn = async (kind: "cmd.erase" | "evt.erased", user: string) => {
  const filter = `bellcast.${kind}.${tokenOf(user)}`
  const { state } = await admin.jsm.streams.info("BELLCAST_LOG", { subjects_filter: filter })
  return state.subjects?.[filter] ?? 0
}

/** Waits until no erasure of a user is under way. Returns how many LOG has. */
const erasuresOf = async (user: string) => {
  await until(
    () => messagesOn("cmd.erase", user),
    (commands) => commands === 0
  )
  return messagesOn("evt.erased", user)
}

describe("erasures", { timeout: 60_000 }, () => {
  it("of a user at the same time are one, however many are asked for", async () => {
    assert.equal((await join("ann")).status, 202)
    const all = await Promise.all(Array.from({ length: 30 }, () => erase("ann")))
    assert.isTrue(all.every(({ status }) => status === 202))
    // On a busy machine the first one may be done before the last request comes.
    assert.isAtMost(await erasuresOf("ann"), 2)
  })

  it("count as changes of the user, also of one who came back meanwhile", async () => {
    for (let n = 0; n < 2; n++) {
      assert.equal((await join("ben")).status, 202)
      assert.equal((await erase("ben")).status, 202)
    }
    assert.deepInclude((await join("ben")).body, { code: 429, error_code: "too-many-changes" })
    assert.equal(await erasuresOf("ben"), 2)
  })

  it("count for a caller with the right `users`, and for nobody else", async () => {
    const eraseFor = (user: string) =>
      call(service.url, "DELETE", `/users/${encodeURIComponent(idOf(user))}`, "site")
    for (const user of ["cid", "dan"]) assert.equal((await eraseFor(user)).status, 202)
    const refused = await eraseFor("eve")
    assert.deepInclude(refused.body, { code: 429, error_code: "too-many-changes" })
    assert.isAbove(Number(refused.headers.get("retry-after")), 60)
    assert.equal((await erase("eve")).status, 202)
    assert.equal(await erasuresOf("dan"), 1)
  })
})
