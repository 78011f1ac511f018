// A draft in the console, without a page: what is written, its size and its faults,
// times in zones, audiences, and where systems cut a text.
import * as Schema from "effect/Schema"
import { assert, describe, it } from "vitest"
import type { Content } from "#browser/console/api/shapes.ts"
import {
  isChannelName,
  namesIn,
  usersMax,
  withAudience,
  withTypedLists
} from "#browser/console/draft/audience.ts"
import { changesOf, dataOf } from "#browser/console/draft/changes.ts"
import {
  addressFault,
  bytesOf,
  emptyAction,
  faultsOf,
  isForeign,
  localeOf,
  others,
  withLocale,
  withoutLocale,
  written,
  writtenOf
} from "#browser/console/draft/content.ts"
import { deviceOf } from "#browser/console/draft/devices.ts"
import { localOf, momentOf, rfc3339, timeFault, timeOf } from "#browser/console/draft/moment.ts"
import { cut, platforms, shownOn } from "#browser/console/draft/platforms.ts"
import { Push } from "#browser/push.ts"

const whole = { title: "Storm", navigate: "https://example.org/storm" }
const draft = written({}, others, whole)

describe("what is written", () => {
  it("becomes declarative data that the service takes, without empty members", () => {
    const data = written(draft, others, { body: "Stay in", image: "", actions: [] }).data!
    assert.deepEqual(data, {
      web_push: 8030,
      notification: { ...whole, body: "Stay in" }
    })
    assert.isTrue(Schema.is(Push)(data))
  })

  it("keeps members that the page does not know", () => {
    const data = {
      web_push: 8030,
      mutable: true,
      notification: { ...whole, silent: true }
    } as const
    const next = written({ data }, others, { title: "Flood" })
    assert.deepEqual(next.data, {
      ...data,
      notification: { ...data.notification, title: "Flood" }
    })
  })

  it("replaces data of another form, which says the same until then", () => {
    const data = { title: "Storm", url: "https://example.org/storm" }
    assert.isTrue(isForeign(data))
    assert.deepEqual(writtenOf(data), whole)
    assert.deepEqual(written({ data }, others, {}).data, draft.data)
    assert.isFalse(isForeign(draft.data))
    assert.isFalse(isForeign({}))
  })

  it("leaves out members of a type that no page could show", () => {
    const action = { action: "a", title: "Map", navigate: "https://example.org/map" }
    const wrong = { title: 5, body: {}, image: ["a"], actions: [action, "b", null], tag: null }
    const as = (notification: unknown) => ({ notification }) as Content
    assert.deepEqual(writtenOf({ ...wrong, url: 1 }), { actions: [action] })
    assert.deepEqual(writtenOf(as({ ...whole, actions: "x" })), whole)
    assert.deepEqual(faultsOf(as(wrong)), [
      { member: "title" },
      { member: "navigate", why: "missing" }
    ])
  })

  it("has addresses in common over the languages until one gets its own", () => {
    const two = written(withLocale(draft, "de"), "de", { title: "Sturm" })
    const moved = written(two, others, { navigate: "https://example.org/b" })
    assert.equal(writtenOf(moved.data_by_locale!["de"]).navigate, "https://example.org/b")
    const own = written(moved, "de", { navigate: "https://example.org/de" })
    const last = written(own, others, { navigate: "https://example.org/c", title: "Gale" })
    assert.equal(writtenOf(last.data_by_locale!["de"]).navigate, "https://example.org/de")
    assert.equal(writtenOf(last.data_by_locale!["de"]).title, "Sturm")
    assert.deepEqual(withoutLocale(last, "de"), { data: last.data! })
  })

  it("moves the buttons without an address of their own with the link", () => {
    const own = { action: "b", title: "Map", navigate: "https://example.org/map" }
    const actions = [emptyAction([], whole.navigate), own]
    const moved = written(written(draft, others, { actions }), others, {
      navigate: "https://example.org/b"
    })
    const addresses = writtenOf(moved.data).actions!.map(({ navigate }) => navigate)
    assert.deepEqual(addresses, ["https://example.org/b", own.navigate])
    assert.notEqual(emptyAction([actions[0]!]).action, actions[0]!.action)
  })

  it("takes a language tag as it is typed, or none", () => {
    assert.equal(localeOf(" pt_br "), "pt-BR")
    assert.equal(localeOf("de-x-formal"), "de-x-formal")
    for (const typed of ["", "German", "Deutsch-DE", "German language", "d", "i-klingon"])
      assert.isUndefined(localeOf(typed))
  })
})

describe("faults", () => {
  it.each([
    ["https://example.org/a?b#c", undefined],
    ["http://localhost:8080/a", undefined],
    ["", "missing"],
    ["example.org/story", "relative"],
    ["localhost:8080/a", "relative"],
    ["/story", "relative"],
    ["https:/example.org", "relative"],
    ["https://", "relative"],
    ["javascript:alert(1)", "scheme"],
    ["JavaScript:alert(1)", "scheme"],
    ["data:text/html,a", "scheme"],
    ["http://example.org/", "http"]
  ])("the link %s is %s, and the service says the same", (navigate, fault) => {
    assert.equal(addressFault(navigate), fault)
    const push = { web_push: 8030, notification: { title: "A", navigate } }
    assert.equal(Schema.is(Push)(push), fault === undefined)
  })

  it("name each member that must be corrected", () => {
    assert.deepEqual(faultsOf(draft.data), [])
    const bad = written(draft, others, {
      title: " ",
      image: "javascript:alert(1)",
      actions: [{ action: "a", title: "", navigate: "/map" }]
    })
    assert.deepEqual(faultsOf(bad.data), [
      { member: "title" },
      { member: "image", why: "scheme" },
      { member: "actionTitle", index: 0 },
      { member: "actionLink", index: 0, why: "relative" }
    ])
  })

  it("count bytes as the payload has them", () => {
    assert.equal(bytesOf({ title: "ä€😀" }), Buffer.byteLength('{"title":"ä€😀"}'))
    const long = written(draft, others, { body: "x".repeat(4_000) })
    const bytes = Buffer.byteLength(JSON.stringify(long.data))
    assert.deepEqual(faultsOf(long.data), [{ member: "bytes", bytes }])
  })
})

describe("times", () => {
  const zone = "Europe/Berlin"

  it("are written with the offset of the zone at that time", () => {
    assert.equal(rfc3339(Date.UTC(2026, 11, 24, 17), zone), "2026-12-24T18:00:00+01:00")
    assert.equal(rfc3339(Date.UTC(2026, 6, 1, 16), zone), "2026-07-01T18:00:00+02:00")
    assert.equal(rfc3339(Date.UTC(2026, 0, 1), "America/St_Johns"), "2025-12-31T20:30:00-03:30")
    assert.equal(rfc3339(Date.UTC(2026, 0, 1), "UTC"), "2026-01-01T00:00:00+00:00")
  })

  it("come back as they were typed", () => {
    for (const at of [Date.UTC(2026, 2, 28, 12), Date.UTC(2026, 9, 26, 12)])
      for (const each of [zone, "Asia/Kathmandu", "America/Los_Angeles", "Pacific/Apia"])
        assert.deepEqual(momentOf(localOf(at, each), each), {
          at,
          isSkipped: false,
          again: undefined
        })
  })

  it("of an hour that is skipped are later by it", () => {
    const moment = momentOf("2027-03-28T02:30", zone)!
    assert.deepEqual(moment, {
      at: Date.UTC(2027, 2, 28, 1, 30),
      isSkipped: true,
      again: undefined
    })
    assert.equal(localOf(moment.at, zone), "2027-03-28T03:30")
  })

  it("of an hour that comes twice are two", () => {
    const { again, at } = momentOf("2026-10-25T02:30", zone)!
    assert.deepEqual([at, again], [Date.UTC(2026, 9, 25, 0, 30), Date.UTC(2026, 9, 25, 1, 30)])
    assert.equal(rfc3339(at, zone), "2026-10-25T02:30:00+02:00")
    assert.equal(rfc3339(again!, zone), "2026-10-25T02:30:00+01:00")
  })

  it("that cannot be sent at say why", () => {
    const now = Date.UTC(2026, 0, 1)
    assert.equal(timeFault("", now), "unreadable")
    assert.equal(timeFault("2025-12-31T23:59:00Z", now), "past")
    assert.equal(timeFault("2026-01-31T01:00:00Z", now), "far")
    assert.isUndefined(timeFault("2026-01-30T00:00:00+01:00", now))
    assert.isUndefined(momentOf("2026-01-01", zone))
  })

  it("are none before their year is typed to the end", () => {
    for (const year of ["0002", "0020", "0202", "20266", "9999"])
      assert.isUndefined(momentOf(`${year}-12-24T18:00`, zone))
    assert.equal(momentOf("2026-12-24T18:00", zone)?.at, Date.UTC(2026, 11, 24, 17))
    for (const at of ["", "soon", "0002-12-24T18:00:00+01:00", "+275760-09-13T00:00:00Z"])
      assert.isUndefined(timeOf(at))
  })
})

describe("audiences", () => {
  it("are read one a line, without repetitions, and name the lines that are none", () => {
    const named = " openid-staff:ann \n\nbob\nopenid-staff:ann\nportier:a@b.example\n:x"
    assert.deepEqual(namesIn(named), {
      ids: ["openid-staff:ann", "portier:a@b.example"],
      wrong: [
        { line: 3, text: "bob" },
        { line: 6, text: ":x" }
      ]
    })
  })

  it("have no empty lists, and nothing where nobody is named", () => {
    const one = withAudience(draft, { channels: ["news"], users: [] })
    assert.deepEqual(one.to, { channels: ["news"] })
    assert.notProperty(withAudience(one, { channels: [] }), "to")
  })

  it("take lists of users as they are typed, and keep the texts that have faults", () => {
    const typed = { users: "openid:ann\n", except_users: "openid:bob\ncarl" }
    const one = withTypedLists(withAudience(draft, { users: ["openid:zoe"] }), typed)
    assert.deepEqual(one.data.to, { users: ["openid:ann"], except_users: ["openid:bob"] })
    assert.deepEqual(one.typed, { except_users: typed.except_users })
    const many = Array.from({ length: usersMax + 1 }, (_, index) => `openid:${index}`)
    const { data, typed: left } = withTypedLists(one.data, { except_users: many.join("\n") })
    assert.equal(data.to!.except_users!.length, usersMax)
    assert.property(left, "except_users")
  })

  it("take names of channels as the service does", () => {
    assert.isTrue(isChannelName("*"))
    for (const name of ["", "a/b", "ä".repeat(128)]) assert.isFalse(isChannelName(name))
  })
})

describe("systems", () => {
  it.each([
    ["one two three", { columns: 7, lines: 1 }, "one two…"],
    ["one two three", { columns: 7, lines: 2 }, "one two three"],
    ["one\ntwo\nthree", { columns: 20, lines: 2 }, "one\ntwo…"],
    ["abcdefghij", { columns: 4, lines: 2 }, "abcdefgh…"],
    ["漢字漢字", { columns: 4, lines: 1 }, "漢字…"],
    ["👩‍👩‍👧 family", { columns: 9, lines: 1 }, "👩‍👩‍👧 family"],
    ["  ", { columns: 4, lines: 1 }, ""]
  ])("cut %j between words and never within a letter", (text, room, expected) => {
    assert.equal(cut(text, room), expected)
  })

  it("say what they leave out", () => {
    const rich = {
      ...whole,
      body: "word ".repeat(100),
      image: "https://example.org/a.jpg",
      icon: "https://example.org/i.png",
      actions: [emptyAction([])]
    }
    const leftOut = Object.fromEntries(
      platforms.map((platform) => [platform, shownOn(platform, rich).leftOut])
    )
    assert.deepEqual(leftOut, {
      windows: ["bodyEnd"],
      macos: ["image", "icon", "buttons", "bodyEnd"],
      android: ["bodyEnd"],
      iphone: ["image", "icon", "buttons", "bodyEnd"],
      firefox: ["image", "buttons", "bodyEnd"]
    })
    for (const platform of platforms) assert.deepEqual(shownOn(platform, whole).leftOut, [])
  })
})

it("changes name what differs, in each language", () => {
  const before = withLocale(draft, "de")
  const after = written({ ...before, name: "Storm" }, "de", { title: "Sturm" })
  assert.deepEqual(changesOf(before, after), [
    { name: "title", locale: "de", before: undefined, after: "Sturm" },
    { name: "name", locale: undefined, before: undefined, after: "Storm" }
  ])
  const stored = { ...after, id: "a", author: "b", last_modified: 1 }
  assert.deepEqual(dataOf(stored), after)
})

it("a device without a name is called by its push service", () => {
  const endpoint = "https://updates.push.services.mozilla.com/wpush/v2/a"
  assert.deepEqual(deviceOf({ id: "a", endpoint, last_modified: 5 }), {
    id: "a",
    label: undefined,
    service: "Mozilla",
    storedAt: 5
  })
})
