// Contract 6: settings of read-only mode, backoff and the end of service.
import type { Login } from "../logins/login.ts"
import { ownModule } from "../logins/own-module.ts"
import { proxy } from "../logins/proxy.ts"
import { define, type Gateway } from "../table.ts"

/** Whether the server knows that callers are told apart by Authorization. */
const isByAuthorization = (login: Login) => ![proxy, ownModule].includes(login)

const day = (offset: number) =>
  new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10)
const page = { origin: "https://page.ok.example" }
const gone = { status: 410, errno: 202, headers: { Alert: /"code":"hard-eol"/ } }

export const lifecycle: ReadonlyArray<Gateway> = [
  [
    "read-only",
    { READONLY: "true" },
    [
      ...(
        [
          ["PUT", "/channels/a/registration", "OPTIONS"],
          ["POST", "/subscriptions", "HEAD, GET, OPTIONS"],
          ["POST", "/batch", "OPTIONS"],
          ["POST", "/nothing", "GET, HEAD, OPTIONS"],
          ["DELETE", "/channels/%ff", "GET, HEAD, OPTIONS"],
          ["PATCH", "/subscriptions/a", "GET, HEAD, OPTIONS"],
          ["GET", "/batch", "OPTIONS"]
        ] as const
      ).map(([method, path, allow]) =>
        define({
          name: `refuses ${method} ${path}, whatever it is`,
          request: { method, path, as: null },
          expected: { status: 405, errno: 115, headers: { Allow: allow } }
        })
      ),
      define({
        name: "says so, and may be cached for a day",
        only: isByAuthorization,
        request: { method: "GET" },
        expected: {
          status: 200,
          body: { settings: { readonly: true } },
          // The response names the caller, so a cache must not give it to another one.
          headers: { "Cache-Control": "max-age=86400", Expires: /GMT$/, Vary: "Authorization" }
        }
      }),
      define({
        name: "may not be cached where the caller may be in any header",
        only: (login) => !isByAuthorization(login),
        request: { method: "GET" },
        expected: {
          status: 200,
          body: { settings: { readonly: true } },
          headers: { "Cache-Control": "no-cache, no-store", Expires: null }
        }
      }),
      define({
        name: "still reads",
        request: { method: "GET", path: "/subscriptions" },
        expected: { status: 200 }
      }),
      define({
        name: "still is in good health",
        request: { method: "GET", path: "/__heartbeat__" },
        expected: { status: 200 }
      }),
      define({
        name: "still responds to preflights",
        request: {
          method: "OPTIONS",
          path: "/subscriptions",
          headers: { ...page, "access-control-request-method": "POST" }
        },
        expected: { status: 200 }
      })
    ]
  ],
  [
    "under load",
    { BACKOFF: "7" },
    (
      [
        ["GET", "/", 200],
        ["GET", "/nothing", 404],
        ["PATCH", "/", 405],
        ["GET", "/subscriptions/", 307],
        ["GET", "/subscriptions?_limit=x", 400],
        ["GET", "/channels/a", 403]
      ] as const
    ).map(([method, path, status]) =>
      define({
        name: `asks for patience with ${method} ${path}`,
        request: { method, path },
        expected: { status, headers: { Backoff: "7" } }
      })
    )
  ],
  [
    "that will end",
    { EOS: day(30), EOS_MESSAGE: "move on", EOS_URL: "https://elsewhere.example/" },
    [
      ...["/", "/nothing", "/subscriptions"].map((path) =>
        define({
          name: `warns with ${path}`,
          request: { method: "GET", path },
          expected: {
            status: path === "/nothing" ? 404 : 200,
            headers: {
              Alert: '{"code":"soft-eol","message":"move on","url":"https://elsewhere.example/"}'
            }
          }
        })
      ),
      define({
        name: "warns of its end rather than of a parameter's",
        request: { method: "GET", path: "/subscriptions?_to=5" },
        expected: { status: 200, headers: { Alert: /"move on"/ } }
      }),
      define({
        name: "says when",
        request: { method: "GET" },
        expected: { status: 200, body: { eos: day(30) } }
      })
    ]
  ],
  [
    "that will end, in other words than ASCII",
    { EOS: day(30), EOS_MESSAGE: "Schluß → \u{1f44b}", PROJECT_DOCS: "https://docs.example/é" },
    [
      define({
        name: "escapes them",
        request: { method: "GET" },
        expected: {
          status: 200,
          headers: {
            Alert:
              '{"code":"soft-eol","message":"Schlu\\u00df \\u2192 \\ud83d\\udc4b",' +
              '"url":"https://docs.example/\\u00e9"}'
          }
        }
      })
    ]
  ],
  [
    "that has ended",
    { EOS: day(-1) },
    [
      ...["/", "/nothing", "/subscriptions", "/__heartbeat__", "/channels/%ff"].map((path) =>
        define({
          name: `has nothing at ${path} any more`,
          request: { method: "GET", path, as: null },
          expected: gone
        })
      ),
      define({
        name: "does not redirect any more",
        request: { method: "GET", target: "/x", as: null },
        expected: gone
      }),
      define({
        name: "says where to read more, without a message of its own",
        request: { method: "GET" },
        expected: ({ root }) => ({
          status: 410,
          headers: { Alert: `{"code":"hard-eol","message":null,"url":"${root}/__api__"}` }
        })
      }),
      define({
        name: "still is there for its balancer",
        request: { method: "GET", path: "/__lbheartbeat__" },
        expected: { status: 200 }
      })
    ]
  ]
]
