// Contract 6: settings of pages, endpoints and numbers; the bounds of a batch that follow.
import { expect } from "vitest"
import type { Api } from "../api.ts"
import { publish } from "../sections/direct.ts"
import { define, type Gateway } from "../table.ts"

/** Contract 2.6. */
const bodyBytesMax = 16_384
const page = { origin: "https://page.ok.example" }

/** To more than 1,000 people, so it reads 16 parts of them. */
const dryRun = (api: Api) => {
  const users = Array.from({ length: 1_000 }, (_, i) => api.userId(`${api.me}${i}`))
  return publish(api, { data: {}, to: { channels: [api.channel], users }, dry_run: true })
}

export const limits: ReadonlyArray<Gateway> = [
  [
    "with small pages and batches of any number",
    { PAGINATE_BY: "2", BATCH_MAX_REQUESTS: "0" },
    [
      ...["", "?_limit=5", "?_limit=0"].map((query) =>
        define({
          name: `shows two at once for "${query}"`,
          given: (api) => Promise.all(["a", "b", "c"].map((name) => api.stored(name))),
          request: { method: "GET", path: `/subscriptions${query}` },
          expected: { status: 200, headers: { "Total-Records": "3", "Next-Page": /_limit=2/ } },
          also: ({ json }) => expect(json.data).toHaveLength(2)
        })
      ),
      define({
        name: "takes 100 requests in a batch",
        request: {
          method: "POST",
          path: "/batch",
          body: { requests: Array(100).fill({ path: "/__lbheartbeat__" }) }
        },
        expected: { status: 200 },
        also: ({ json }) => expect(json.responses).toHaveLength(100)
      }),
      define({
        name: "does not take 1,001, whose responses would have no limit",
        request: {
          method: "POST",
          path: "/batch",
          body: { requests: Array(1_001).fill({ path: "/__lbheartbeat__" }) }
        },
        expected: { status: 400, details: ["body:requests"], message: /1000/ }
      })
    ]
  ],
  [
    "with endpoints switched off",
    {
      BATCH_ENABLED: "false",
      // An empty value is an unset one.
      PUBLIC_METRICS: "",
      PUBLIC_HEARTBEAT: "false",
      PUBLIC_API_DESCRIPTION: "false"
    },
    [
      ...["/__metrics__", "/__heartbeat__", "/__api__"].flatMap((path) =>
        ["GET", "HEAD"].map((method) =>
          define({
            name: `does not show ${path}, for ${method}`,
            request: { method, path, as: null },
            expected: method === "GET" ? { status: 403, errno: 121 } : { status: 403 }
          })
        )
      ),
      define({
        name: "still answers load balancers",
        request: { method: "GET", path: "/__lbheartbeat__", as: null },
        expected: { status: 200 }
      }),
      define({
        name: "runs no batch, whatever it holds",
        request: { method: "POST", path: "/batch", body: { requests: [{ path: "/" }] } },
        expected: { status: 405, errno: 115, headers: { Allow: "OPTIONS" } }
      }),
      define({
        name: "does not preflight a batch",
        request: {
          method: "OPTIONS",
          path: "/batch",
          headers: { ...page, "access-control-request-method": "POST" }
        },
        expected: { status: 400, details: ["header:Access-Control-Request-Method"] }
      }),
      define({
        name: "says that it runs no batch",
        request: { method: "GET" },
        expected: { status: 200, body: { settings: { batch_enabled: false } } }
      }),
      define({
        name: "keeps the rest",
        request: { method: "DELETE", path: "/subscriptions/abc" },
        expected: { status: 404, errno: 110 }
      })
    ]
  ],
  [
    "of other limits",
    {
      BATCH_MAX_REQUESTS: "2",
      REQUESTS_PER_USER_PER_MINUTE_MAX: "32",
      SUBSCRIPTIONS_PER_USER_MAX: "1",
      RETRY_AFTER_SECONDS: "11",
      PROJECT_NAME: "Rundfunk"
    },
    [
      define({
        name: "says its name and its limits",
        request: { method: "GET" },
        expected: {
          status: 200,
          body: {
            project_name: "Rundfunk",
            settings: { batch_max_requests: 2 }
          }
        }
      }),
      define({
        name: "takes two requests in a batch",
        request: {
          method: "POST",
          path: "/batch",
          body: { requests: [{ path: "/" }, { path: "/" }] }
        },
        expected: { status: 200 }
      }),
      define({
        name: "does not take three",
        request: {
          method: "POST",
          path: "/batch",
          body: { requests: [{ path: "/" }, { path: "/" }, { path: "/" }] }
        },
        expected: { status: 400, details: ["body:requests"], message: /2/ }
      }),
      define({
        name: "does not take a larger body, not even within a batch",
        request: (api) => ({
          method: "POST",
          path: "/batch",
          body: {
            requests: [
              {
                method: "POST",
                path: "/subscriptions",
                body: { data: api.subscription("a", { x: "x".repeat(bodyBytesMax) }) }
              },
              { path: "/" }
            ]
          }
        }),
        expected: { status: 200 },
        also: ({ json }) =>
          expect(json.responses.map(({ status }: { status: number }) => status)).toEqual([413, 200])
      }),
      define({
        name: "does not take a batch larger than its requests may be",
        request: {
          method: "POST",
          path: "/batch",
          body: { requests: [{ path: "/", body: { x: "x".repeat(2 * bodyBytesMax) } }] }
        },
        expected: { status: 413, error: "body-too-large" }
      }),
      define({
        name: "limits what dry runs read, and leaves their caller the other requests",
        given: async (api) => {
          await api.registered()
          for (let i = 0; i < 2; i++) expect((await api.send(dryRun(api))).status).toBe(200)
        },
        request: dryRun,
        expected: {
          status: 429,
          error: "too-many-requests",
          headers: { "Retry-After": /^([12]\d|30)$/ }
        },
        also: async (_, api) => {
          const sent = publish(api, { data: {}, to: { channels: [api.channel] } })
          expect((await api.send(sent)).status).toBe(202)
        }
      }),
      define({
        name: "lets a user hold one subscription, and says when to try again",
        given: (api) =>
          api.send({
            method: "POST",
            path: "/subscriptions",
            body: { data: api.subscription("a") }
          }),
        request: (api) => ({
          method: "POST",
          path: "/subscriptions",
          body: { data: api.subscription("b") }
        }),
        expected: { status: 429, error: "too-many-subscriptions", headers: { "Retry-After": "11" } }
      }),
      define({
        name: "lets that one be replaced",
        given: async (api) =>
          (
            await api.send({
              method: "POST",
              path: "/subscriptions",
              body: { data: api.subscription("a") }
            })
          ).json.data.id,
        request: (api, id) => ({
          method: "PUT",
          path: `/subscriptions/${id}`,
          body: { data: api.subscription("a") }
        }),
        expected: { status: 200 }
      })
    ]
  ]
]
