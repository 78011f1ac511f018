// Contract 4.16: what a broadcast says, its name, and tests.
import { expect } from "vitest"
import { until } from "../../support/client.ts"
import type { Api, Request } from "../api.ts"
import { type Case, define } from "../table.ts"
import { locationOf } from "./broadcasts.ts"
import { acceptedAt } from "./direct.ts"
import { drafted, of } from "./drafts.ts"
import { idIn } from "./given.ts"

interface Row {
  readonly id: string
  readonly [member: string]: unknown
}

const push = (title: string) => ({
  web_push: 8030,
  notification: {
    title,
    body: "Two hours ago",
    navigate: "https://example.org/",
    image: "https://example.org/a.png"
  }
})

const get = (target: string, as: string): Request => ({ method: "GET", target, as })
const byPublisher = (api: Api, target: string) => get(target, api.target.publisher)
const list = (as: string, query = ""): Request => get(`/v1/broadcasts${query}`, as)

/** The row of a broadcast in a list, which has it a moment later. */
const rowOf = async (api: Api, request: Request, id: string): Promise<Row> => {
  const rows = await until(
    async () => (await api.send(request)).json.data as ReadonlyArray<Row>,
    (found) => found.some((row) => row.id === id)
  )
  return rows.find((row) => row.id === id)!
}

/** Texts of a browser, in data of a site's own worker. */
const long = { title: `${"t".repeat(199)}\u{1F600}x`, body: "b".repeat(201), image: "i" }

const pseudonym = expect.stringMatching(/^pseudonym:[\w-]{22}$/)
const letter = (api: Api) => ({
  data: { title: "Dear Anna" },
  to: {
    channels: [api.channel],
    users: [api.userId()],
    except_users: [api.userId(`${api.me}2`)]
  }
})

const inTwentyDays = (api: Api) => ({
  at: new Date(Date.now() + 20 * 86_400_000).toISOString(),
  to: { channels: [api.channel] }
})

export const content: ReadonlyArray<Case> = [
  define<string>({
    name: "shows what was published, its name and what browsers show of it, to its publisher",
    given: (api) => locationOf(api, { data: push("Fire"), name: "Fire, corrected: 2/2 \u{1F600}" }),
    request: byPublisher,
    expected: {
      status: 200,
      body: {
        data: {
          name: "Fire, corrected: 2/2 \u{1F600}",
          title: "Fire",
          body: "Two hours ago",
          image: "https://example.org/a.png",
          data: push("Fire")
        }
      }
    },
    also: async ({ json }, api, location) => {
      const row = await rowOf(api, list(api.target.publisher), idIn(location))
      const { body, image, name, title } = json.data
      expect(row).toMatchObject({ name, title, body, image })
      for (const absent of ["data", "data_by_locale", "test"])
        expect(row).not.toHaveProperty(absent)
    }
  }),
  define<string>({
    name: "shows the TTL, the urgency and the topic of a broadcast, which a copy of it needs",
    given: (api) => {
      const headers = { TTL: "60", Urgency: "high", Topic: "A_z-9" }
      return acceptedAt(api, { data: push("Fire"), ...inTwentyDays(api) }, headers)
    },
    request: byPublisher,
    expected: { status: 200, body: { data: { ttl: 60, urgency: "high", topic: "A_z-9" } } },
    also: async ({ json }, api, location) => {
      const row = await rowOf(api, list(api.target.publisher), idIn(location))
      const { topic, ttl, urgency } = json.data
      expect(row).toMatchObject({ topic, ttl, urgency })
      const plain = await api.send(byPublisher(api, await locationOf(api)))
      for (const absent of ["topic", "ttl", "urgency"])
        expect(plain.json.data).not.toHaveProperty(absent)
    }
  }),
  define<string>({
    name: "shows whole texts of a broadcast, and cut ones in a list",
    given: (api) => locationOf(api, { data: long }),
    request: byPublisher,
    expected: { status: 200, body: { data: { ...long, data: long } } },
    also: async (_, api, location) => {
      const row = await rowOf(api, list(api.target.publisher), idIn(location))
      const [title, body] = [`${"t".repeat(199)}…`, `${"b".repeat(199)}…`]
      expect(row).toMatchObject({ title, body, image: "i" })
    }
  }),
  define<string>({
    name: "shows the variants, and the title of the first one where there is no other data",
    given: (api) => {
      const data_by_locale = { fr: { title: "Feu" }, de: { title: "Feuer" } }
      return acceptedAt(api, { data_by_locale, to: { channels: [api.channel] } })
    },
    request: byPublisher,
    expected: {
      status: 200,
      body: {
        data: {
          title: "Feuer",
          data_by_locale: { de: { title: "Feuer" }, fr: { title: "Feu" } }
        }
      }
    },
    also: async ({ json }, api, location) => {
      expect(json.data).not.toHaveProperty("data")
      const row = await rowOf(api, list(api.target.publisher), idIn(location))
      expect(row["title"]).toBe("Feuer")
    }
  }),
  define<string>({
    name: "shows what a broadcast says after a change before its start",
    given: async (api) => {
      const location = await acceptedAt(api, { data: { title: "Frie" }, ...inTwentyDays(api) })
      const body = { data: { data: { title: "Fire" } } }
      await api.send({ method: "PATCH", target: location, body, as: api.target.publisher })
      return location
    },
    request: byPublisher,
    expected: { status: 200, body: { data: { title: "Fire", data: { title: "Fire" } } } },
    also: async (_, api, location) => {
      const row = await rowOf(api, list(api.target.publisher), idIn(location))
      expect(row["title"]).toBe("Fire")
    }
  }),
  define<string>({
    name: "shows nothing beside the state and the counts where nothing was said",
    given: (api) => locationOf(api, { data: {} }),
    request: byPublisher,
    expected: { status: 200, body: { data: { data: {} } } },
    also: ({ json }) => {
      for (const absent of ["name", "title", "body", "image", "data_by_locale"])
        expect(json.data).not.toHaveProperty(absent)
    }
  }),
  define<string>({
    name: "shows an operator what a broadcast to users says",
    given: (api) => acceptedAt(api, { data: push("Dear Anna"), to: { users: [api.userId()] } }),
    request: (api, target) => get(target, api.target.operator),
    expected: { status: 200, body: { data: { title: "Dear Anna", data: push("Dear Anna") } } },
    also: async (_, api, location) => {
      const row = await rowOf(api, list(api.target.operator), idIn(location))
      expect(row["title"]).toBe("Dear Anna")
    }
  }),
  define<string>({
    name: "gives the publisher the users that a broadcast names, and nobody else",
    given: (api) => acceptedAt(api, letter(api), { "idempotency-key": api.channel }),
    request: byPublisher,
    expected: {
      status: 200,
      body: { data: { users: [pseudonym], except_users: [pseudonym], to: { users: 1 } } }
    },
    also: async ({ json, text }, api, location) => {
      expect(text).not.toContain(api.userId())
      const { except_users, users } = json.data
      // The same key for the same recipients is the same broadcast.
      const again = { ...letter(api), to: { channels: [api.channel], users, except_users } }
      expect(await acceptedAt(api, again, { "idempotency-key": api.channel })).toBe(location)
      const { content, to } = { content: { data: { n: 1 } }, to: { users, except_users } }
      const draft = await drafted(api, { ...content, to })
      expect((await api.send(of(api, "GET", draft.id))).json.data.to).toEqual(to)
      const seen = await api.send(get(location, api.target.operator))
      const rows = [await rowOf(api, list(api.target.publisher), idIn(location)), seen.json.data]
      for (const row of rows)
        for (const absent of ["users", "except_users"]) expect(row).not.toHaveProperty(absent)
    }
  }),
  define<string>({
    name: "names no users where a broadcast names none",
    given: (api) => locationOf(api),
    request: byPublisher,
    expected: { status: 200 },
    also: ({ json }) => {
      for (const absent of ["users", "except_users"]) expect(json.data).not.toHaveProperty(absent)
    }
  }),
  define<ReadonlyArray<string>>({
    name: "lists tests where they are asked for",
    given: async (api) => {
      const to = { users: [api.userId()] }
      const test = idIn(await acceptedAt(api, { data: { title: "Try" }, test: true, to }))
      const other = idIn(await acceptedAt(api, { data: { a: 1 }, test: false, to }))
      await rowOf(api, list(api.target.publisher), other)
      return [test, other]
    },
    request: (api) => list(api.target.publisher, "?test=true"),
    expected: { status: 200 },
    also: async ({ json }, api, [test, other]) => {
      const found = (json.data as ReadonlyArray<Row>).filter(({ id }) => id === test)
      expect(found).toMatchObject([{ id: test, test: true, title: "Try" }])
      const { json: without } = await api.send(list(api.target.publisher))
      const ids = (without.data as ReadonlyArray<Row>).map(({ id }) => id)
      expect([ids.includes(test!), ids.includes(other!)]).toEqual([false, true])
      // Operators see all that is sent.
      expect(await rowOf(api, list(api.target.operator), test!)).toMatchObject({ test: true })
    }
  }),
  define({
    name: "lists no tests for another value than true",
    request: (api) => list(api.target.publisher, "?test=1"),
    expected: { status: 400, errno: 107, details: ["querystring:test"] }
  })
]
