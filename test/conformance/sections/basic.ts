// Contract 7.3: users by Basic.

import { basic } from "../logins/basicauth.ts"
import { type Case, define } from "../table.ts"

const raw = (bytes: Buffer) => `Basic ${bytes.toString("base64")}`

const known: ReadonlyArray<readonly [name: string, authorization: string, credentials: string]> = [
  ["a pair", basic("mat:secret"), "mat:secret"],
  ["an empty password", basic("bob:"), "bob:"],
  ["a password with a colon", basic("a:b:c"), "a:b:c"],
  ["the scheme in small letters", basic("mat:secret").replace("Basic", "basic"), "mat:secret"],
  ["a name beyond ASCII", basic("é:ü"), "é:ü"],
  ["a name in Latin-1", raw(Buffer.from("é:ü", "latin1")), "é:ü"]
]

const vectors: ReadonlyArray<readonly [credentials: string, id: string]> = [
  ["mat:secret", "671ab4b3f380624f644086a9718a2e13a73765deaef9d2e660b7f1300c9a1160"],
  ["bob:", "61bc8d8801a5e382dba4630cc329e549abab3f5f2e262f9219724292109e2df6"]
]

const cases: ReadonlyArray<Case> = [
  ...known.map(([name, authorization, credentials]) =>
    define({
      name: `knows a user by ${name}`,
      request: { method: "GET", as: null, headers: { authorization } },
      expected: (api) => ({ status: 200, body: { user: { id: api.userId(credentials) } } })
    })
  ),
  ...vectors.map(([credentials, id]) =>
    define({
      name: `makes the id of ${credentials} as the contract has it`,
      request: { method: "GET", as: credentials },
      expected: (api) => ({
        status: 200,
        body:
          api.target.secret === "0123456789abcdef0123456789abcdef"
            ? { user: { id: `basicauth:${id}` } }
            : {}
      })
    })
  )
]

export const basicUsers: ReadonlyArray<Case> = cases.map((each) => ({
  ...each,
  only: ({ policy }) => policy === "basicauth"
}))
