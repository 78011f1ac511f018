// Drafts: who may see and change them, what LOG keeps of them, and what a crash leaves of one that
// is published.
import { randomUUID } from "node:crypto"
import { assert, describe, it } from "vitest"
import { call, until } from "#test/client.ts"
import { rebuildAt } from "#test/history.ts"
import { startNats } from "#test/nats.ts"
import { connectAdmin } from "#test/nats-admin.ts"
import { type Service, startService } from "#test/service.ts"
import { useShared } from "#test/use-service.ts"
import { idOf, tokenOf } from "#test/users.ts"

const env = {
  BELLCAST_CHANNEL_WRITE_PRINCIPALS: [
    ...["news", "sport"].map((channel) => `${channel}=${idOf("anna")}`),
    `news=${idOf("ben")}`,
    ...["dora", "dan", "dick"].map((writer) => `letters=${idOf(writer)}`)
  ].join(" "),
  BELLCAST_USER_WRITE_PRINCIPALS: `${idOf("anna")} ${idOf("ben")}`,
  BELLCAST_OPERATOR_PRINCIPALS: idOf("olga")
}

const roles = "gateway,projection,fanout,tally"

const shared = useShared(async (opened) => {
  const nats = opened.use(await startNats())
  const admin = opened.use(await connectAdmin(nats.url))
  const first = opened.use(await startService({ natsUrl: nats.url, roles, env }))
  const second = opened.use(await startService({ natsUrl: nats.url, roles: "gateway", env }))
  return { nats, admin, first, second }
})

const put = (
  { url }: Pick<Service, "url">,
  id: string,
  user: string,
  data: object,
  etag?: string | null
) => call(url, "PUT", `/drafts/${id}`, user, { data }, etag ? { "if-match": etag } : {})

const drafted = async (user: string, data: object) => {
  const id = randomUUID()
  const { body, headers, status } = await put(shared.first, id, user, data)
  assert.equal(status, 201, JSON.stringify(body))
  return { id, etag: headers.get("etag")! }
}

const publish = (
  { url }: Pick<Service, "url">,
  { etag, id }: { readonly id: string; readonly etag: string },
  user: string
) => call(url, "POST", `/drafts/${id}/publish`, user, undefined, { "if-match": etag })

const listed = async (user: string, query = "") => {
  const ids: Array<string> = []
  let path = `/drafts${query}`
  while (true) {
    const { body, headers } = await call(shared.second.url, "GET", path, user)
    ids.push(...body.data.map(({ id }: { readonly id: string }) => id))
    const next = headers.get("next-page")
    if (next === null) return ids
    path = next.slice(next.indexOf("/drafts"))
  }
}

/** How many messages LOG has on the subject of a draft. */
const messagesOf = async (id: string, jsm = shared.admin.jsm) => {
  const subject = `bellcast.cmd.draft.${id}`
  const { state } = await jsm.streams.info("BELLCAST_LOG", { subjects_filter: subject })
  return state.subjects?.[subject] ?? 0
}

describe("drafts", { timeout: 60_000 }, () => {
  it("shows those without users to publishers of all their channels and nobody else", async () => {
    const both = await drafted("anna", { to: { channels: ["news", "sport"] } })
    const one = await drafted("anna", { to: { channels: ["news"] } })
    const letter = await drafted("anna", { to: { channels: ["news"], users: [idOf("cleo")] } })
    const excepting = await drafted("anna", {
      to: { channels: ["news"], except_users: [idOf("cleo")] }
    })
    const nowhere = await drafted("anna", { to: { channels: [] } })
    const all = [both, one, letter, excepting, nowhere]
    const seenBy = async (user: string) => {
      const ids = await listed(user)
      const found: Array<boolean> = []
      for (const { id } of all) {
        const { status } = await call(shared.second.url, "GET", `/drafts/${id}`, user)
        assert.equal(status === 200, ids.includes(id), id)
        found.push(status === 200)
      }
      return found
    }
    assert.deepEqual(await seenBy("anna"), [true, true, true, true, true])
    assert.deepEqual(await seenBy("ben"), [false, true, false, false, false])
    assert.deepEqual(await seenBy("olga"), [true, true, true, true, true])
    assert.deepEqual(await seenBy("cleo"), [false, false, false, false, false])
    assert.deepEqual(await listed("olga", `?author=${idOf("ben")}`), [])
    for (const each of [both, letter, excepting, nowhere]) {
      assert.equal((await publish(shared.first, each, "ben")).status, 404)
      assert.equal((await put(shared.first, each.id, "ben", {}, each.etag)).status, 404)
    }
  })

  it("lets another publisher of its channels change, but not take over, a draft", async () => {
    const { etag, id } = await drafted("anna", { to: { channels: ["news"] } })
    for (const to of [
      { channels: [] },
      { channels: ["news", "sport"] },
      { channels: ["news"], users: [idOf("ben")] }
    ])
      assert.equal((await put(shared.first, id, "ben", { to }, etag)).status, 403)
    const data = { data: { n: 2 }, to: { channels: ["news"] } }
    const { body, status } = await put(shared.second, id, "ben", data, etag)
    assert.equal(status, 200)
    assert.deepInclude(body.data, { ...data, author: idOf("anna"), changed_by: idOf("ben") })
    const seen = await call(shared.first.url, "GET", `/drafts/${id}`, "anna")
    assert.deepEqual(seen.body, body)
  })

  it("leaves a record of its author when an operator sees or deletes it", async () => {
    const { admin, first } = shared
    const looksAt = async (author: string) => {
      const subjects_filter = `bellcast.look.${tokenOf(author)}.${tokenOf("olga")}.>`
      const { state } = await admin.jsm.streams.info("BELLCAST_WORK", { subjects_filter })
      return Object.keys(state.subjects ?? {}).length
    }
    const asOlga = (method: string, id: string, header: Record<string, string>, body?: object) =>
      call(first.url, method, `/drafts/${id}`, "olga", body, header)
    const letter = { data: { title: "Dear Cleo" } }
    // A look is stored once a minute for each author, so each has one draft.
    const stored = await drafted("dora", letter)
    const stale = await drafted("dan", letter)
    const deleted = await drafted("dick", letter)
    const requests = [
      () => asOlga("PUT", stored.id, { "if-none-match": "*" }, { data: {} }),
      () => asOlga("DELETE", stale.id, { "if-match": '"1"' })
    ]
    for (const [i, author] of ["dora", "dan"].entries()) {
      assert.equal(await looksAt(author), 0)
      const { body, status } = await requests[i]!()
      assert.equal(status, 412)
      assert.deepInclude(body.details.existing, letter)
      assert.equal(await looksAt(author), 1, author)
    }
    assert.equal((await asOlga("DELETE", deleted.id, {})).status, 200)
    assert.equal(await looksAt("dick"), 1)
    const isLine = (line: string) =>
      line.includes(`"person":"${tokenOf("dick")}"`) && line.includes("DELETE")
    await until(
      async () => first.output(),
      (output) => output.split("\n").some(isLine)
    )
  })

  it("takes one of many saves of the same form", async () => {
    const { etag, id } = await drafted("anna", { to: { channels: ["news"] } })
    const statuses = await Promise.all(
      Array.from({ length: 10 }, async (_, n) => {
        const service = n % 2 === 0 ? shared.first : shared.second
        return (await put(service, id, "anna", { data: { n } }, etag)).status
      })
    )
    assert.deepEqual(statuses.sort(), [200, ...Array.from({ length: 9 }, () => 412)])
    const begun = await Promise.all(
      Array.from({ length: 6 }, async (_, n) => {
        const service = n % 2 === 0 ? shared.first : shared.second
        return (await put(service, `${id}-2`, n < 3 ? "anna" : "ben", {})).status
      })
    )
    assert.lengthOf(
      begun.filter((status) => status === 201),
      1
    )
  })

  it("keeps one message of each draft in LOG, and none of one that is over", async () => {
    let saved = await drafted("anna", { data: { n: 0 }, to: { channels: ["news"] } })
    const published = await drafted("anna", { data: {}, to: { channels: ["news"] } })
    const deleted = await drafted("anna", { data: { n: 0 } })
    for (let n = 1; n <= 5; n++) {
      const { headers } = await put(shared.first, saved.id, "anna", { data: { n } }, saved.etag)
      saved = { ...saved, etag: headers.get("etag")! }
    }
    assert.equal((await publish(shared.first, published, "anna")).status, 202)
    const path = `/drafts/${deleted.id}`
    assert.equal((await call(shared.second.url, "DELETE", path, "anna")).status, 200)
    await until(
      () => Promise.all([saved, published, deleted].map(({ id }) => messagesOf(id))),
      (counts) => counts.join() === "1,0,0"
    )
    const { body } = await call(shared.second.url, "GET", `/drafts/${saved.id}`, "anna")
    assert.deepEqual(body.data.data, { n: 5 })
  })

  it("stores 200 drafts of a user, and no more until one is over", async () => {
    const ids = Array.from({ length: 204 }, () => randomUUID())
    const statuses: Array<number> = []
    const next = ids.values()
    const one = async () => {
      for (const id of next)
        statuses.push((await put(shared.first, id, "olga", { data: { n: 1 } })).status)
    }
    await Promise.all(Array.from({ length: 4 }, one))
    const stored = statuses.filter((status) => status === 201).length
    assert.equal(statuses.filter((status) => status === 429).length, 204 - stored)
    // One that is stored at the same moment may count twice.
    assert.isAtLeast(stored, 197)
    for (let n = stored; n < 200; n++)
      assert.equal((await put(shared.first, randomUUID(), "olga", {})).status, 201)
    const own = await listed("olga", `?author=${idOf("olga")}`)
    assert.lengthOf(new Set(own), 200)
    const all = await listed("olga")
    assert.lengthOf(new Set(all), all.length)
    for (const id of own) assert.include(all, id)
    const full = await put(shared.second, "one-more", "olga", {})
    assert.deepInclude(full.body, { error_code: "too-many-drafts", errno: 117 })
    assert.equal((await call(shared.first.url, "DELETE", `/drafts/${own[7]}`, "olga")).status, 200)
    assert.equal((await put(shared.second, "one-more", "olga", {})).status, 201)
  })

  it("stores 16 MiB of drafts of a user in an hour, and leaves room for broadcasts", async () => {
    const text = "x".repeat(28_000)
    let [bytes, refused] = [0, 0]
    const saveOn = async () => {
      let saved = await drafted("ben", {})
      while (true) {
        const data = { data: { text } }
        const { body, headers, status } = await put(shared.first, saved.id, "ben", data, saved.etag)
        if (status === 429) {
          assert.equal(body.error_code, "too-many-draft-bytes")
          assert.match(headers.get("retry-after")!, /^\d+$/)
          refused++
          return
        }
        assert.equal(status, 200)
        bytes += text.length
        saved = { ...saved, etag: headers.get("etag")! }
      }
    }
    await Promise.all(Array.from({ length: 8 }, saveOn))
    assert.equal(refused, 8)
    assert.isAbove(bytes, 0.9 * 16 * 1024 ** 2)
    const sent = await call(shared.first.url, "POST", "/channels/news", "ben", { data: {} })
    assert.equal(sent.status, 202)
  })

  it("stores no mail address of a user, and shows a letter in no log and no error", async () => {
    const to = { users: ["openid:anna@example.org"] }
    const secret = { data: { title: "a secret letter" }, to }
    const refused = await put(shared.first, randomUUID(), "anna", secret)
    assert.equal(refused.status, 400)
    assert.notMatch(JSON.stringify(refused.body), /example.org|secret letter/)
    const { etag, id } = await drafted("anna", { data: { title: "a secret letter" } })
    assert.equal((await publish(shared.first, { etag, id }, "anna")).status, 400)
    assert.equal((await put(shared.first, id, "ben", {}, etag)).status, 404)
    for (const { output } of [shared.first, shared.second])
      assert.notMatch(output(), /example.org|secret letter/)
  })
})

describe("a draft that is published", { timeout: 120_000 }, () => {
  it("is one broadcast after a SIGKILL between the broadcast and the response", async () => {
    await using nats = await startNats()
    await using admin = await connectAdmin(nats.url)
    const start = () => startService({ natsUrl: nats.url, roles, env })
    const broadcasts = async () => {
      const subjects_filter = "bellcast.cmd.broadcast.>"
      const { state } = await admin.jsm.streams.info("BELLCAST_LOG", { subjects_filter })
      return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0)
    }
    let service = await start()
    try {
      for (let round = 1; round <= 3; round++) {
        const id = randomUUID()
        const data = { data: { round }, to: { channels: ["news"] } }
        const etag = (await put(service, id, "anna", data)).headers.get("etag")!
        const sent = publish(service, { id, etag }, "anna").catch(() => undefined)
        while ((await broadcasts()) < round);
        await service.kill()
        await sent
        service = await start()
        const { body, status } = await publish(service, { id, etag }, "anna")
        assert.equal(status, 202, JSON.stringify(body))
        assert.equal(await broadcasts(), round)
        const again = await publish(service, { id, etag }, "anna")
        assert.equal(again.body.id, body.id)
        assert.equal((await call(service.url, "GET", `/drafts/${id}`, "anna")).status, 404)
        assert.equal((await publish(service, { id, etag }, "ben")).status, 404)
        await until(
          () => messagesOf(id, admin.jsm),
          (count) => count === 0
        )
      }
    } finally {
      await service[Symbol.asyncDispose]()
    }
  })

  it("is one broadcast however many publish it at once", async () => {
    const draft = await drafted("anna", { data: { n: 1 }, to: { channels: ["news"] } })
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        publish(n % 2 === 0 ? shared.first : shared.second, draft, n < 4 ? "anna" : "ben")
      )
    )
    const ids = answers.flatMap(({ body, status }) => (status === 202 ? [body.id] : []))
    assert.isAtLeast(ids.length, 4)
    assert.lengthOf(new Set(ids), 1)
    for (const { status } of answers) assert.include([202, 404], status)
  })
})

it("makes up for deletions that a killed projection left, and rebuilds the same bucket", {
  timeout: 90_000
}, async () => {
  await using nats = await startNats()
  await using admin = await connectAdmin(nats.url)
  await using gateway = await startService({ natsUrl: nats.url, roles: "gateway", env })
  const startProjection = () => startService({ natsUrl: nats.url, roles: "projection", env })
  let projection = await startProjection()
  const ids = Array.from({ length: 20 }, () => randomUUID())
  for (const id of ids) {
    const first = await put(gateway, id, "anna", { data: { n: 1 } })
    assert.equal(first.status, 201)
    const etag = first.headers.get("etag")!
    assert.equal((await put(gateway, id, "anna", { data: { n: 2 } }, etag)).status, 200)
  }
  await projection.kill()
  const counts = () => Promise.all(ids.map((id) => messagesOf(id, admin.jsm)))
  assert.include(await counts(), 2, "the kill came too late to prove anything")
  projection = await startProjection()
  await until(counts, (all) => all.every((count) => count === 1))
  const entries = async () => {
    const found: Record<string, string> = {}
    const stream = "KV_bellcast_drafts"
    const { state } = await admin.jsm.streams.info(stream)
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      const message = await admin.jsm.streams.getMessage(stream, { seq })
      if (message !== null && !message.subject.endsWith(".meta"))
        found[message.subject] = message.string()
    }
    return found
  }
  const before = await entries()
  assert.lengthOf(Object.values(before), 1)
  await projection.stop()
  await admin.jsm.streams.delete("KV_bellcast_drafts")
  await rebuildAt(nats.url)
  assert.deepEqual(await entries(), before)
})
