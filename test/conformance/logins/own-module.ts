// Users of an operator's own module, which checks an HMAC.
import { createHmac } from "node:crypto"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Login } from "./login.ts"

const secret = "the secret of the module"
const challenge = 'Acme realm="acme"'

const source = `import { createHmac } from "node:crypto"

const signatureOf = (name) => createHmac("sha256", "${secret}").update(name).digest("hex")

export default {
  challenge: '${challenge}',
  async authenticate({ scheme, token }) {
    if (scheme !== "acme") return undefined
    if (token === "throws") throw new Error("out of order")
    const [name, signature] = token.split(".")
    if (signature !== signatureOf(name)) return undefined
    return { user: Buffer.from(name, "base64url").toString() }
  },
  isUp: async () => true
}
`

const acme = (token: string) => ({ authorization: `Acme ${token}` })

const tokenOf = (user: string) => {
  const name = Buffer.from(user).toString("base64url")
  return `${name}.${createHmac("sha256", secret).update(name).digest("hex")}`
}

export const ownModule: Login = {
  name: "a module of the operator",
  policy: "acme",
  challenge,
  isInAuthorization: true,
  isOfScripts: false,
  isInHeartbeat: true,
  start: async () => {
    const folder = await mkdtemp(join(tmpdir(), "bellcast-"))
    const file = join(folder, "acme-policy.mjs")
    await writeFile(file, source)
    return {
      env: { BELLCAST_AUTH_POLICIES: `acme=${file}` },
      headersOf: async (user) => acme(tokenOf(user)),
      idOf: (user) => `acme:${user}`,
      wrong: async () => [
        { name: "an unknown token", headers: acme(`${tokenOf("anna")}0`), challenge },
        { name: "a scheme alone", headers: { authorization: "Acme" }, challenge },
        { name: "another scheme", headers: { authorization: "Bearer abc" }, challenge },
        { name: "an empty header", headers: { authorization: "" }, challenge }
      ],
      outage: async () => ({
        method: "GET",
        path: "/subscriptions",
        headers: acme("throws"),
        end: () => {}
      }),
      [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true })
    }
  }
}
