// Who may see what a broadcast says, and what the list of a channel shows to those who may not
// publish on all that a broadcast names: contract 4.9 and 4.15 for callers that the conformance
// suite does not have.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, finishedAt, publishAt, until } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { runCli } from "../support/run-cli.ts"
import { type Service, startService } from "../support/service.ts"
import { idOf } from "../support/users.ts"

const on = (channels: ReadonlyArray<string>, users: ReadonlyArray<string>) =>
  channels.flatMap((channel) => users.map((user) => `${channel}=${idOf(user)}`))

/** `users` is a holder of that right, `desk` an operator, `art` may publish on art alone. */
const env = {
  BELLCAST_CHANNEL_WRITE_PRINCIPALS: [
    ...on(["art", "books"], ["publisher", "editor", "users"]),
    ...on(["art"], ["art"])
  ].join(" "),
  BELLCAST_USER_WRITE_PRINCIPALS: [idOf("publisher"), idOf("users")].join(" "),
  BELLCAST_OPERATOR_PRINCIPALS: idOf("desk")
}

interface Row {
  readonly id: string
  readonly title?: string
  readonly to?: object
  readonly [member: string]: unknown
}

/** Broadcasts of the publisher, the oldest first; each has its key as title, name and topic. */
const recipients = {
  both: { channels: ["art", "books"] },
  excepting: { channels: ["art", "books"], except_users: [idOf("bob")] },
  letter: { users: [idOf("anna")] },
  mixed: { channels: ["art"], users: [idOf("anna")] },
  elsewhere: { channels: ["books"] }
}
type Key = keyof typeof recipients | "plain"

describe("what a broadcast says", { timeout: 120_000 }, () => {
  let nats: TestNats
  let service: Service
  const ids = {} as Record<Key, string>
  beforeAll(async () => {
    nats = await startNats({ syncAlways: false })
    service = await startService({ natsUrl: nats.url, env })
    for (const [key, to] of Object.entries(recipients)) {
      const body = { data: { title: key }, name: key, to }
      ids[key as Key] = await publishAt(service.url, "/broadcasts", body, { topic: key })
    }
    const plain = { data: { title: "plain" }, name: "plain" }
    ids.plain = await publishAt(service.url, "/channels/art", plain, { topic: "plain" })
    for (const id of Object.values(ids)) await finishedAt(service.url, `/broadcasts/${id}`)
  })
  afterAll(async () => {
    for (const each of [service, nats]) await each?.[Symbol.asyncDispose]()
  })

  const get = (path: string, user: string) => call(service.url, "GET", path, user)
  const rowsOf = async (path: string, user: string): Promise<ReadonlyArray<Row>> =>
    (await get(path, user)).body.data
  const keyOf = (wanted: string): string =>
    Object.entries(ids).find(([, id]) => id === wanted)?.[0] ?? wanted

  /** What a caller sees of each broadcast: all, all but what it says, or nothing of it. */
  const sights = async (user: string) => {
    const found: Record<string, string> = {}
    for (const [key, id] of Object.entries(ids)) {
      const { body, status } = await get(`/broadcasts/${id}`, user)
      const { data, name, title, topic } = body.data ?? {}
      const isWhole = [data?.title, title, name, topic].every((each) => each === key)
      const isHidden = (data ?? title ?? name ?? topic) === undefined
      found[key] = status === 200 && isWhole ? "all" : isHidden ? String(status) : "some of it"
    }
    return found
  }

  it("is shown to its publisher and to operators, and of letters to nobody else", async () => {
    const all = ["both", "excepting", "letter", "mixed", "elsewhere", "plain"]
    const whole = Object.fromEntries(all.map((key) => [key, "all"]))
    assert.deepEqual(await sights("publisher"), whole)
    assert.deepEqual(await sights("desk"), whole)
    assert.deepEqual(await sights("users"), { ...whole, letter: "200", mixed: "200" })
    const noUsers = { excepting: "404", letter: "404", mixed: "404" }
    assert.deepEqual(await sights("editor"), { ...whole, ...noUsers })
    const other = Object.fromEntries(all.map((key) => [key, key === "plain" ? "all" : "404"]))
    assert.deepEqual(await sights("art"), other)
    const listed = await rowsOf("/broadcasts", "users")
    const titles = listed.map(({ id, title }) => [keyOf(id), title])
    assert.sameDeepMembers(titles, [
      ...["both", "excepting", "elsewhere", "plain"].map((key) => [key, key]),
      ...["letter", "mixed"].map((key) => [key, undefined])
    ])
  })

  it("stands in the list of each channel that it names, in pages", async () => {
    const onArt = ["plain", "mixed", "excepting", "both"]
    for (const user of ["publisher", "editor", "users", "art", "desk"]) {
      const seen: Array<string> = []
      for (let path: string | undefined = "/channels/art/broadcasts?_limit=1"; path; ) {
        const { body, headers } = await get(path, user)
        seen.push(...body.data.map(({ id }: Row) => keyOf(id)))
        path = headers.get("next-page")?.split("/v1")[1]
      }
      assert.deepEqual(seen, onArt, user)
    }
    const { stdout } = await runCli([
      ...["broadcast", "list", "--channel", "art", "--json", "--nats", nats.url]
    ])
    const printed = stdout.trim().split("\n")
    assert.deepEqual(
      printed.map((line) => keyOf(JSON.parse(line).id)),
      onArt
    )
  })

  it("is a title there, without recipients, for who may not publish on all it names", async () => {
    const rows = await rowsOf("/channels/art/broadcasts", "art")
    const [plain, mixed, excepting, both] = rows as [Row, Row, Row, Row]
    assert.deepInclude(plain, { name: "plain", publisher: idOf("publisher") })
    assert.deepEqual([mixed.title, excepting.title, both.title], [undefined, "excepting", "both"])
    const counts = Object.keys(both).filter((member) => member !== "title")
    for (const row of [mixed, excepting, both])
      for (const member of ["to", "name", "publisher", "without_subscription", "data"])
        assert.notProperty(row, member)
    assert.includeMembers(counts, ["state", "people", "accepted", "finished", "accepted_at"])
    for (const name of ["", "/events", "/pushes", "/timeline"])
      assert.equal((await get(`/broadcasts/${both.id}${name}`, "art")).status, 404, name)
    const cancel = { data: { state: "cancelled" } }
    const path = `/broadcasts/${both.id}`
    assert.equal((await call(service.url, "PATCH", path, "art", cancel)).status, 404)
    const by = encodeURIComponent(idOf("publisher"))
    const ofPublisher = await rowsOf(`/channels/art/broadcasts?publisher=${by}`, "art")
    assert.deepEqual(
      ofPublisher.map(({ id }) => keyOf(id)),
      ["plain"]
    )
  })

  it("is in the audit when an operator saw it, once an hour", async () => {
    const looksAt = async (key: Key): Promise<ReadonlyArray<{ readonly by: string }>> => {
      const { stdout } = await runCli(["audit", ids[key], "--json", "--nats", nats.url])
      return JSON.parse(stdout).looks
    }
    // All within an hour.
    await until(
      async () => new Date(),
      (now) => now.getMinutes() < 59
    )
    const before = await looksAt("letter")
    for (let i = 0; i < 2; i++) await get(`/broadcasts/${ids.letter}`, "desk")
    assert.isAtMost((await looksAt("letter")).length, before.length + 1)
    // The same first and last broadcast as in the list of all, but not the letter between them.
    await rowsOf("/channels/art/broadcasts", "desk")
    await rowsOf("/broadcasts", "desk")
    const after = await looksAt("letter")
    assert.isAtLeast(after.length, 2)
    assert.deepEqual([...new Set(after.map(({ by }) => by))], [idOf("desk")])
    const { stdout } = await runCli(["audit", ids.letter, "--nats", nats.url])
    assert.match(stdout, new RegExp(`^looked at 20\\S+Z by ${idOf("desk")}$`, "m"))
    // The publisher looks at nothing of others.
    await get(`/broadcasts/${ids.letter}`, "publisher")
    assert.lengthOf(await looksAt("letter"), after.length)
  })

  it("is changed before a letter starts by nobody who may not read it", async () => {
    const at = new Date(Date.now() + 3_600_000).toISOString()
    const later = new Date(Date.now() + 7_200_000).toISOString()
    const letter = { data: { title: "Dear Anna" }, to: recipients.letter, at }
    const path = `/broadcasts/${await publishAt(service.url, "/broadcasts", letter)}`
    const change = (data: object) => call(service.url, "PATCH", path, "users", { data })
    for (const data of [{ data: { title: "Other" } }, { data_by_locale: { de: {} } }])
      assert.equal((await change(data)).status, 403)
    assert.equal((await change({ at: later })).status, 200)
    assert.deepEqual((await get(path, "publisher")).body.data.data, letter.data)
  })
})
