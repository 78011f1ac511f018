// Users whom a proxy names. The tests play the proxy.
import type { Login } from "./login.ts"

const secret = "a secret of the proxy, of thirty-two bytes"
const challenge = 'Proxy realm="Realm"'
const invalid = `${challenge}, error="invalid_token"`

/** Headers of the proxy for a user. */
export const namedBy = (user: string, proof = secret) => ({
  "x-forwarded-user": user,
  "x-proxy-secret": proof
})

export const proxy: Login = {
  name: "proxy",
  policy: "proxy",
  challenge,
  isInAuthorization: false,
  isOfScripts: false,
  isInHeartbeat: false,
  start: async () => ({
    env: {
      BELLCAST_AUTH_POLICIES: "proxy",
      BELLCAST_TRUSTED_PROXIES: "127.0.0.1",
      BELLCAST_AUTH_PROXY_SECRET: secret
    },
    headersOf: async (user) => namedBy(user),
    idOf: (user) => `proxy:${user}`,
    wrong: async () => [
      { name: "another secret", headers: namedBy("anna", `${secret}x`), challenge: invalid },
      { name: "no secret", headers: { "x-forwarded-user": "anna" }, challenge: invalid },
      { name: "no user", headers: { "x-proxy-secret": secret }, challenge },
      { name: "an empty user", headers: namedBy(""), challenge },
      { name: "a user in Authorization", headers: { authorization: "Proxy anna" }, challenge }
    ],
    [Symbol.asyncDispose]: async () => {}
  })
}
