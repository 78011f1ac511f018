// Passwords of the accounts file, as streams/README.md says to write them.
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { connect } from "@nats-io/transport-node"
import { assert, it } from "vitest"
import { accounts, passwords } from "../support/accounts.ts"
import { startConfiguredNats } from "../support/nats-configured.ts"
import { claimPort } from "../support/ports.ts"

const readme = readFileSync(new URL("../../streams/README.md", import.meta.url), "utf8")
const lines = /^```sh\n(SERVICE_PASSWORD=.*?)^```$/ms.exec(readme)![1]!
/** The values as a shell reads the lines of the document. */
const documented = Object.fromEntries(
  ["SERVICE_PASSWORD", "AUDIT_PASSWORD"].map((name) => [
    name,
    execFileSync("sh", ["-ec", `${lines}\nprintf %s "$${name}"`], { encoding: "utf8" })
  ])
)

it("may be anything, in quotes that belong to the value, or a bcrypt hash", async () => {
  const port = await claimPort()
  const own = {
    ADMIN_PASSWORD: '"123456"',
    BILLING_PASSWORD: '"a\\\\b\\"c $d {e"',
    SYS_PASSWORD: '"0x1f # 2k"'
  }
  await using _ = await startConfiguredNats(port, `jetstream {}\n${accounts}`, {
    ...passwords,
    ...documented,
    ...own
  })
  for (const [user, pass] of [
    ["bellcast", "a#b c"],
    ["audit", "a#b c"],
    ["bellcast-admin", "123456"],
    ["billing", 'a\\b"c $d {e'],
    ["sys", "0x1f # 2k"]
  ]) {
    const nc = await connect({ servers: `127.0.0.1:${port}`, user: user!, pass: pass! })
    await nc.close()
    const wrong = connect({ servers: `127.0.0.1:${port}`, user: user!, pass: "a" })
    const refusal = await wrong.catch((error: Error) => error.message)
    assert.equal(refusal, "Authorization Violation", user)
  }
})
