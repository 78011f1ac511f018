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
  ["mat:secret", "5e4cea54f25e735d69f0abe2425848011e644cd6b517407152494e998e2bfce3"],
  ["bob:", "ec3bd31ad9f17802723c08dda88408c22bde707262b68ce3e3d8bafdc3d57a73"]
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
        body: api.target.secret === "s3cr3t" ? { user: { id: `basicauth:${id}` } } : {}
      })
    })
  )
]

export const basicUsers: ReadonlyArray<Case> = cases.map((each) => ({
  ...each,
  only: ({ policy }) => policy === "basicauth"
}))
