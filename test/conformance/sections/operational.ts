// Contract 5.1 to 5.5: endpoints about the server.
import { expect } from "vitest"
import type { Api, Request } from "../api.ts"
import { type Case, define } from "../table.ts"

const publicKeyOf = async (api: Api): Promise<string> =>
  (await api.send({ method: "GET" })).json.capabilities.webpush.vapid_public_key

const heartbeat: Request = { method: "GET", path: "/__heartbeat__", as: null }

export const operational: ReadonlyArray<Case> = [
  define({
    name: "says what it is and what it can do",
    request: { method: "GET", as: null },
    expected: ({ root, target }) => ({
      status: 200,
      body: {
        url: root,
        http_api_version: "1.0",
        project_name: expect.any(String),
        project_version: expect.any(String),
        project_docs: expect.stringMatching(/^https?:/),
        settings: { batch_enabled: true, batch_max_requests: 25, readonly: false },
        capabilities: {
          [target.login.policy]: { description: expect.any(String), url: expect.any(String) },
          webpush: {
            description: expect.any(String),
            url: expect.any(String),
            vapid_public_key: expect.stringMatching(/^[A-Za-z0-9_-]{87}$/)
          }
        }
      }
    }),
    also: ({ json }) => {
      expect(json.user).toBeUndefined()
      expect(json.eos).toBeUndefined()
    }
  }),
  define<boolean>({
    name: "is in good health",
    // Nobody delivers in tests that start their own server, which it says after a minute.
    given: async (api) => (await api.send(heartbeat)).status === 200 || api.target.isWhole,
    request: heartbeat,
    expected: ({ target: { login } }, roles) => ({
      status: roles ? 200 : 503,
      exactly: {
        ...{
          storage: true,
          cache: true,
          permission: true,
          space: true,
          delivery: true,
          roles
        },
        ...(login.isInHeartbeat ? { [login.policy]: true } : {})
      }
    })
  }),
  define({
    name: "is there",
    request: { method: "GET", path: "/__lbheartbeat__", as: null },
    expected: { status: 200, exactly: {} }
  }),
  define({
    name: "shows anybody the key of the root that browsers subscribe with, cacheable for minutes",
    given: publicKeyOf,
    request: {
      method: "GET",
      path: "/vapid-public-key",
      as: null,
      headers: { "if-none-match": '"0"' }
    },
    expected: (_, key) => ({
      status: 200,
      exactly: { data: { vapid_public_key: key } },
      headers: {
        ETag: `"${key}"`,
        "Cache-Control": "max-age=300",
        "Access-Control-Expose-Headers": /ETag/
      }
    })
  }),
  ...['"another", "KEY"', 'W/"KEY"', '"a,b" ,, W/"KEY",', "*"].map((tags) =>
    define({
      name: `does not send the key again to who has it: ${tags}`,
      given: publicKeyOf,
      request: (_, key) => ({
        method: "GET",
        path: "/vapid-public-key",
        as: null,
        headers: { "if-none-match": tags.replace("KEY", String(key)) }
      }),
      expected: (_, key) => ({
        status: 304,
        headers: { ETag: `"${key}"`, "Cache-Control": "max-age=300" }
      })
    })
  ),
  define({
    name: "says how to contribute",
    request: { method: "GET", path: "/contribute.json", as: null },
    expected: {
      status: 200,
      body: {
        name: expect.any(String),
        description: expect.any(String),
        repository: expect.any(Object)
      }
    }
  }),
  define({
    name: "refuses a Host that could not stand in a URL",
    request: { method: "GET", as: null, headers: { host: "evil.example/path?x=<y>" } },
    expected: { status: 400, errno: 107 },
    also: ({ text }) => expect(text).not.toMatch(/evil/)
  })
]
