// Users by Basic: any pair is a user.
import { createHmac } from "node:crypto"
import type { Login, Users } from "./login.ts"

export const basic = (credentials: string): string =>
  `Basic ${Buffer.from(credentials).toString("base64")}`

const challenge = 'Basic realm="Realm"'

const wrong: ReadonlyArray<readonly [name: string, authorization: string]> = [
  ["an unknown scheme", "Bearer abc"],
  ["no pair", basic("nonsense")],
  ["an empty name", basic(":secret")],
  ["a scheme alone", "Basic"],
  ["no base64", "Basic !!!"],
  ["an empty header", ""]
]

/** Pairs, also of a server that this suite did not start. */
export const pairs = (secret: string): Users => ({
  env: {},
  headersOf: async (pair) => ({ authorization: basic(pair) }),
  idOf: (pair) => `basicauth:${createHmac("sha256", secret).update(pair).digest("hex")}`,
  wrong: async () =>
    wrong.map(([name, authorization]) => ({ name, headers: { authorization }, challenge })),
  [Symbol.asyncDispose]: async () => {}
})

export const basicauth: Login = {
  name: "basicauth",
  policy: "basicauth",
  challenge,
  isInAuthorization: true,
  isOfScripts: false,
  isInHeartbeat: false,
  start: async ({ secret }) => pairs(secret)
}
