// Contract 4.4: data with `web_push: 8030`, on channels, to recipients, and in tests; variants that
// grow when they are stored.
import { expect } from "vitest"
import type { Api, Request, StoredObject } from "../api.ts"
import { type Case, define } from "../table.ts"
import { accepted, publish } from "./broadcasts.ts"

const navigate = "https://example.org/"
const notification = { title: "Hello", navigate }
const push = (members: object = {}, beside: object = {}) => ({
  web_push: 8030,
  notification: { ...notification, ...members },
  ...beside
})

const action = { action: "later", title: "Later", navigate }

const taken: ReadonlyArray<readonly [name: string, data: object]> = [
  ["title and address alone", push()],
  ["a page of this machine", push({ navigate: "http://localhost:8000/" })],
  ["unknown members", push({ other: 1, actions: [{ ...action, other: [] }] }, { published_at: 1 })],
  [
    "every known member",
    push(
      {
        ...{ body: "", lang: "", dir: "rtl", tag: "t", data: null, app_badge: 0, timestamp: 1 },
        ...{ icon: navigate, image: navigate, badge: navigate, actions: [action] },
        ...{ silent: false, renotify: true, requireInteraction: true, vibrate: [100, 50] }
      },
      { mutable: true, app_badge: 3 }
    )
  ],
  ["another number", { web_push: 8031 }],
  ["no number", { web_push: "8030", notification: 1 }]
]

const inNotification = (members: object, ...names: ReadonlyArray<string>) =>
  [push(members), names.map((name) => `notification.${name}`)] as const

const refused: ReadonlyArray<readonly [data: object, names: ReadonlyArray<string>]> = [
  [{ web_push: 8030 }, ["notification"]],
  [{ web_push: 8030, notification: "Hello" }, ["notification"]],
  [{ web_push: 8030, notification: {} }, ["notification.navigate", "notification.title"]],
  inNotification({ title: "" }, "title"),
  inNotification({ navigate: "/news" }, "navigate"),
  inNotification({ navigate: "http://example.org/" }, "navigate"),
  inNotification({ navigate: "https://" }, "navigate"),
  inNotification({ navigate: "https:example.org" }, "navigate"),
  inNotification({ icon: "icon.png" }, "icon"),
  ...["title", "navigate", "body", "lang", "tag", "dir", "icon", "image", "badge"].map((name) =>
    inNotification({ [name]: 1 }, name)
  ),
  ...["body", "silent", "renotify", "requireInteraction"].map((name) =>
    inNotification({ [name]: null }, name)
  ),
  ...["timestamp", "app_badge"].flatMap((name) =>
    [-1, 1.5, "1"].map((value) => inNotification({ [name]: value }, name))
  ),
  inNotification({ image: "/image.png" }, "image"),
  inNotification({ badge: "badge.png" }, "badge"),
  inNotification({ dir: "up" }, "dir"),
  inNotification({ vibrate: 100 }, "vibrate"),
  inNotification({ vibrate: [100, -1] }, "vibrate.1"),
  inNotification({ actions: action }, "actions"),
  inNotification({ actions: [{ ...action, icon: "x.png" }] }, "actions.0.icon"),
  inNotification({ renotify: true }, "tag"),
  inNotification({ silent: true, vibrate: [] }, "vibrate"),
  inNotification({ actions: [action, { title: "x" }] }, "actions.1.action", "actions.1.navigate"),
  [push({}, { mutable: "yes" }), ["mutable"]],
  [push({}, { app_badge: -1 }), ["app_badge"]]
]

/** A body below 16 KiB with 17 variants of so many numbers; JavaScript writes 21 bytes for each. */
const writtenLonger = (numbers: number): string => {
  const variant = `{"a":[${Array.from({ length: numbers }, () => "1e20").join()}]}`
  const variants = [..."abcdefghijklmnopq"].map((c) => `"d${c}":${variant}`)
  return `{"data_by_locale":{${variants.join()}}}`
}

const bad = { web_push: 8030, notification: { title: "x" } }
const details = ["body:data.notification.navigate"]
const direct = (api: Api, body: object): Request => ({
  ...publish(api, { ...body, to: { channels: [api.channel] } }),
  path: "/broadcasts"
})

export const pushData: ReadonlyArray<Case> = [
  ...taken.map(([name, data]) =>
    define({
      name: `accepts data with web_push and ${name}`,
      request: (api) => publish(api, { data }),
      expected: { status: 202 }
    })
  ),
  ...refused.map(([data, names]) =>
    define({
      name: `names the member of a push that browsers drop: ${JSON.stringify(data).slice(0, 90)}`,
      request: (api) => publish(api, { data }),
      expected: { status: 400, errno: 109, details: names.map((name) => `body:data.${name}`) }
    })
  ),
  define({
    name: "says what is wrong with an address",
    request: (api) => publish(api, { data: push({ navigate: "/news" }) }),
    expected: { status: 400, message: /^data\.notification\.navigate in body: Must be an absolute/ }
  }),
  define({
    name: "checks each variant",
    request: (api) => publish(api, { data: push(), data_by_locale: { de: push(), fr: bad } }),
    expected: { status: 400, details: ["body:data_by_locale.fr.notification.navigate"] }
  }),
  define({
    name: "checks the push of a dry run",
    request: (api) => publish(api, { data: bad, dry_run: true }),
    expected: { status: 400, details }
  }),
  define({
    name: "checks a push to recipients",
    request: (api) => direct(api, { data: bad }),
    expected: { status: 400, details }
  }),
  define<StoredObject>({
    name: "checks a test of a subscription",
    given: (api) => api.stored(),
    request: (_, { id }) => ({
      method: "POST",
      path: `/subscriptions/${id}/test`,
      body: { data: bad }
    }),
    expected: { status: 400, details }
  }),
  ...[publish, direct].map((send) =>
    define({
      name: `warns of a payload that Firefox on Android may not get (${send.name})`,
      request: (api) => send(api, { data: { t: "x".repeat(2_821 - '{"t":""}'.length) } }),
      expected: { status: 202, body: { warnings: expect.arrayContaining([accepted.warning]) } }
    })
  ),
  define({
    name: "warns of a variant, too",
    request: (api) => publish(api, { data_by_locale: { de: { t: "x".repeat(2_820) } } }),
    expected: { status: 202, body: { warnings: expect.arrayContaining([accepted.warning]) } }
  }),
  define({
    name: "does not warn of 2,820 bytes",
    request: (api) => publish(api, { data: { t: "x".repeat(2_820 - '{"t":""}'.length) } }),
    expected: { status: 202, body: { warnings: expect.not.arrayContaining([accepted.warning]) } }
  }),
  define({
    name: "refuses a broadcast whose variants JSON writes longer than they came",
    request: (api) => publish(api, writtenLonger(180)),
    expected: { status: 413, error: "body-too-large" }
  }),
  define({
    name: "accepts variants that JSON writes longer than they came, within bounds",
    request: (api) => publish(api, writtenLonger(30)),
    expected: { status: 202 }
  })
]
