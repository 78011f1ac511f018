// Contract 4.1 to 4.3: channels and registrations.
import { expect } from "vitest"
import { type Case, define } from "../table.ts"

const accepted = { code: 202, message: "Accepted" }

export const names: ReadonlyArray<readonly [what: string, path: string, id: string]> = [
  ["a dot", "a.b", "a.b"],
  ["only dots", "%2E%2E%2E", "..."],
  ["a space", "a%20b", "a b"],
  ["an asterisk", "*x", "*x"],
  ["only an asterisk", "%2A", "*"],
  ["a greater-than sign", "a%3Eb", "a>b"],
  ["letters beyond ASCII", "caf%C3%A9", "café"],
  ["an emoji", "%F0%9F%98%80", "\u{1f600}"],
  ["an equals sign", "a=2Eb", "a=2Eb"],
  ["a dollar and a plus", "$a+b", "$a+b"],
  ["a null character", "a%00b", "a\u0000b"],
  ["a line break", "a%0Ab", "a\nb"],
  ["a percent sign", "a%25b", "a%b"],
  ["255 bytes", "x".repeat(255), "x".repeat(255)],
  ["the name of a folder", "registration", "registration"]
]

export const channels: ReadonlyArray<Case> = [
  ...["PUT", "DELETE"].flatMap((method) => [
    define({
      name: `acknowledges ${method} of a registration`,
      request: (api) => ({ method, path: `/channels/${api.channel}/registration` }),
      expected: { status: 202, exactly: accepted }
    }),
    define({
      name: `acknowledges a repeated ${method} of a registration the same way`,
      given: (api) => api.send({ method, path: `/channels/${api.channel}/registration` }),
      request: (api) => ({ method, path: `/channels/${api.channel}/registration` }),
      expected: { status: 202, exactly: accepted }
    }),
    define({
      name: `ignores body and query of ${method} of a registration`,
      request: (api) => ({
        method,
        path: `/channels/${api.channel}/registration?%ff=_since`,
        body: "{nonsense",
        headers: { "content-type": "application/json", accept: "text/html" }
      }),
      expected: { status: 202 }
    }),
    define({
      name: `ignores even a body without end of ${method} of a registration`,
      request: (api) => ({
        method,
        path: `/channels/${api.channel}/registration`,
        body: "x".repeat(300_000),
        headers: { "content-type": "application/json" }
      }),
      expected: { status: 202 }
    }),
    define({
      name: `does not let nobody ${method} a registration`,
      request: (api) => ({ method, path: `/channels/${api.channel}/registration`, as: null }),
      expected: { status: 401, errno: 104 }
    }),
    define({
      name: `refuses ${method} of a registration to a channel of 256 bytes`,
      request: { method, path: `/channels/${"x".repeat(256)}/registration` },
      expected: { status: 400, errno: 107, details: ["path:null"] }
    })
  ]),
  define({
    name: "lets nobody register on a closed channel but by a principal that is named",
    request: (api) => ({ method: "PUT", path: `/channels/closed-${api.channel}/registration` }),
    expected: { status: 403, errno: 121 },
    also: async (_, api) => {
      const club = `/channels/closed-club-${api.channel}`
      const statuses = async (as: string) => {
        const put = await api.send({ method: "PUT", path: `${club}/registration`, as })
        const get = await api.send({ method: "GET", path: club, as })
        const gone = await api.send({ method: "DELETE", path: `${club}/registration`, as })
        return [put.status, get.status, gone.status]
      }
      expect(await statuses(api.me)).toEqual([403, 403, 202])
      expect(await statuses(api.target.publisher)).toEqual([202, 200, 202])
    }
  }),
  define({
    name: "shows the channel to who just registered",
    given: (api) => api.registered(),
    request: (api) => ({ method: "GET", path: `/channels/${api.channel}` }),
    expected: (api) => ({
      status: 200,
      exactly: { data: { id: api.channel, registrations: 1, push: 0 } },
      headers: { ETag: /^"\d+"$/, "Last-Modified": /GMT$/, "Cache-Control": "no-cache, no-store" }
    })
  }),
  define({
    name: "shows the counts to a publisher who is not registered",
    given: (api) => api.registered(),
    request: (api) => ({
      method: "GET",
      path: `/channels/${api.channel}`,
      as: api.target.publisher
    }),
    expected: (api) => ({
      status: 200,
      exactly: { data: { id: api.channel, registrations: 1, push: 0 } }
    })
  }),
  define({
    name: "responds to HEAD of a channel with the headers of GET",
    given: (api) => api.registered(),
    request: (api) => ({ method: "HEAD", path: `/channels/${api.channel}` }),
    expected: { status: 200, headers: { ETag: /^"\d+"$/ } }
  }),
  define({
    name: "does not promise 304 for a channel",
    given: async (api) => {
      await api.registered()
      return (await api.send({ method: "GET", path: `/channels/${api.channel}` })).headers.etag
    },
    request: (api, etag) => ({
      method: "GET",
      path: `/channels/${api.channel}`,
      headers: { "if-none-match": etag as string }
    }),
    expected: { status: 200 }
  }),
  define({
    name: "counts every user once",
    given: async (api) => {
      await Promise.all([1, 2, 3, 4].map((i) => api.registered(api.channel, `${api.me}${i}`)))
      await api.registered()
      await api.registered()
    },
    request: (api) => ({ method: "GET", path: `/channels/${api.channel}` }),
    expected: { status: 200, body: { data: { registrations: 5 } } }
  }),
  define({
    name: "counts a user who left no more",
    given: async (api) => {
      await api.registered()
      await api.registered(api.channel, `${api.me}2`)
      await api.send({
        method: "DELETE",
        path: `/channels/${api.channel}/registration`,
        as: `${api.me}2`
      })
    },
    request: (api) => ({ method: "GET", path: `/channels/${api.channel}` }),
    expected: { status: 200, body: { data: { registrations: 1 } } }
  }),
  define({
    name: "moves a channel's timestamp when somebody registers",
    given: async (api) => {
      await api.registered()
      const { headers } = await api.send({ method: "GET", path: `/channels/${api.channel}` })
      await api.registered(api.channel, `${api.me}2`)
      return Number(headers.etag?.slice(1, -1))
    },
    request: (api) => ({ method: "GET", path: `/channels/${api.channel}` }),
    expected: { status: 200 },
    also: ({ headers }, _, before) =>
      expect(Number(headers.etag?.slice(1, -1))).toBeGreaterThan(before as number)
  }),
  define({
    name: "does not show a channel to who is not registered",
    given: (api) => api.registered(api.channel, `${api.me}2`),
    request: (api) => ({ method: "GET", path: `/channels/${api.channel}` }),
    expected: { status: 403, errno: 121 }
  }),
  define({
    name: "does not show a channel to who left",
    given: async (api) => {
      await api.registered()
      await api.send({ method: "DELETE", path: `/channels/${api.channel}/registration` })
    },
    request: (api) => ({ method: "GET", path: `/channels/${api.channel}` }),
    expected: { status: 403, errno: 121 }
  }),
  define({
    name: "does not show a channel that nobody knows",
    request: (api) => ({ method: "GET", path: `/channels/${api.channel}` }),
    expected: { status: 403 }
  }),
  define({
    name: "does not show a channel to nobody",
    request: { method: "GET", path: "/channels/a", as: null },
    expected: { status: 401, errno: 104 }
  }),
  define({
    name: "refuses a channel of 256 bytes",
    request: { method: "GET", path: `/channels/${"%C3%A9".repeat(128)}` },
    expected: { status: 400, errno: 107, details: ["path:null"] }
  }),
  ...names.map(([what, path, id]) =>
    define({
      name: `takes ${what} in a name literally`,
      given: (api) => api.registered(path),
      request: { method: "GET", path: `/channels/${path}` },
      expected: { status: 200, body: { data: { id } } }
    })
  ),
  define({
    name: "counts nobody else in a channel called *",
    given: async (api) => {
      await api.registered()
      await api.registered("%2A")
      await api.registered(`${api.channel}x`, `${api.me}2`)
    },
    request: { method: "GET", path: "/channels/*" },
    expected: { status: 200 },
    also: async ({ json }, api) => {
      await api.registered(`${api.channel}y`, `${api.me}3`)
      const again = await api.send({ method: "GET", path: "/channels/*" })
      // Other test runs may use this channel, but not at the same moment.
      expect(again.json.data.registrations - json.data.registrations).toBeLessThanOrEqual(0)
    }
  })
]
