// Contract 4.8: broadcasts that pause by themselves. No process of the suite delivers: these cases
// are about what a publisher may ask for, and what is shown.
import { expect } from "vitest"
import type { Api } from "../api.ts"
import { type Case, define } from "../table.ts"
import { locationOf, publish } from "./broadcasts.ts"
import { acceptedAt, publish as publishDirect } from "./direct.ts"
import { idIn, running } from "./given.ts"

const pause_when = { failed_share: 0.2 }

const shownAt = (api: Api, target: string) => ({
  method: "GET" as const,
  target,
  as: api.target.publisher
})

const bad: ReadonlyArray<readonly [name: string, value: unknown, details: string]> = [
  ["a share of 0", { failed_share: 0 }, "body:pause_when.failed_share"],
  ["a share above 1", { failed_share: 1.01 }, "body:pause_when.failed_share"],
  ["a share that is a text", { failed_share: "0.2" }, "body:pause_when.failed_share"],
  ["no share", {}, "body:pause_when.failed_share"],
  ["another reason to pause", { ...pause_when, gone_share: 0.2 }, "body:pause_when"],
  ["a number alone", 0.2, "body:pause_when"],
  ["null", null, "body:pause_when"]
]

const posts = [
  ["a channel", (api: Api, body: object) => publish(api, body)],
  [
    "several channels",
    (api: Api, body: object) => publishDirect(api, { ...body, to: { channels: [api.channel] } })
  ]
] as const

export const pauseWhen: ReadonlyArray<Case> = [
  define<string>({
    name: "shows when a broadcast to a channel pauses by itself, also in lists",
    given: (api) => locationOf(api, { data: { a: 1 }, pause_when }),
    request: shownAt,
    expected: { status: 200, body: { data: { pause_when } } },
    also: async ({ json }, api, location) => {
      expect(json.data).not.toHaveProperty("changed_by")
      const target = location.replace(/\/[^/]*$/, "")
      const { json: list } = await api.send(shownAt(api, target))
      const found = list.data.find(({ id }: { id: string }) => id === idIn(location))
      // A replica may have the broadcast a moment later.
      if (found !== undefined) expect(found).toMatchObject({ pause_when })
    }
  }),
  define<string>({
    name: "shows when a broadcast to several channels pauses by itself",
    given: (api) =>
      acceptedAt(api, { data: { a: 1 }, to: { channels: [api.channel] }, pause_when }),
    request: shownAt,
    expected: { status: 200, body: { data: { pause_when } } }
  }),
  define<string>({
    name: "shows no pause_when where none was asked for",
    given: (api) => locationOf(api),
    request: shownAt,
    expected: { status: 200 },
    also: ({ json }) => expect(json.data).not.toHaveProperty("pause_when")
  }),
  define<string>({
    name: "shows who paused a broadcast, and no numbers where somebody did",
    given: async (api) => {
      const location = await running(api)
      const path = `/broadcasts/${idIn(location)}`
      const body = { data: { state: "paused" } }
      await api.send({ method: "PATCH", path, as: api.target.publisher, body })
      return location
    },
    request: shownAt,
    expected: { status: 200 },
    also: ({ json }, api) => {
      expect(json.data.changed_by).toBe(api.userId(api.target.publisher))
      expect(json.data).not.toHaveProperty("because")
    }
  }),
  define({
    name: "takes a dry run with pause_when",
    request: (api) => publish(api, { data: {}, dry_run: true, pause_when }),
    expected: { status: 200 }
  }),
  ...posts.flatMap(([name, post]) =>
    bad.map(([what, value, details]) =>
      define({
        name: `refuses to pause a broadcast to ${name} at ${what}`,
        request: (api) => post(api, { data: {}, pause_when: value }),
        expected: { status: 400, errno: 109, details: [details] }
      })
    )
  ),
  define<string>({
    name: "refuses a key that was used for another pause_when",
    given: (api) => locationOf(api, { pause_when }, { "Idempotency-Key": api.channel }),
    request: (api) =>
      publish(api, { pause_when: { failed_share: 0.3 } }, { "Idempotency-Key": api.channel }),
    expected: { status: 400, errno: 107, details: ["header:Idempotency-Key"] }
  }),
  define<string>({
    name: "takes the same key for the same pause_when",
    given: (api) => locationOf(api, { pause_when }, { "Idempotency-Key": api.channel }),
    request: (api) => publish(api, { pause_when }, { "Idempotency-Key": api.channel }),
    expected: { status: 202 },
    also: ({ json }, _, location) => expect(json.id).toBe(idIn(location))
  })
]
