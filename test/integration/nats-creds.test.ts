// A login by a credentials file, whose JWT expires: the operator replaces the file while the
// service runs.
import { rename, rm, writeFile } from "node:fs/promises"
import { join as joined } from "node:path"
import { nkeys } from "@nats-io/nats-core"
import { assert, it } from "vitest"
import { finished, join, publish, until } from "../support/client.ts"
import { startConfiguredNats } from "../support/nats-configured.ts"
import { claimPort } from "../support/ports.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

type Key = ReturnType<typeof nkeys.createUser>

const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString()
const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")

/** A JWT as `nsc` makes it. `name` stands for both its names. */
const jwt = (issuer: Key, subject: Key, type: string, limits: object, exp?: number) => {
  const claims = {
    ...{ jti: subject.getPublicKey(), iat: Math.floor(Date.now() / 1000), exp },
    ...{ iss: issuer.getPublicKey(), sub: subject.getPublicKey(), name: type },
    nats: { type, version: 2, ...limits }
  }
  const text = `${encoded({ typ: "JWT", alg: "ed25519-nkey" })}.${encoded(claims)}`
  return `${text}.${Buffer.from(issuer.sign(Buffer.from(text))).toString("base64url")}`
}

const unlimited = {
  ...{ subs: -1, data: -1, payload: -1, imports: -1, exports: -1, conn: -1, leaf: -1 },
  ...{ mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1, wildcards: true }
}

/** A nats-server that believes the users of one account. */
const startNatsWithAccount = async () => {
  const port = await claimPort()
  const operator = nkeys.createOperator()
  const account = nkeys.createAccount()
  const system = nkeys.createAccount()
  const noJetStream = { ...unlimited, mem_storage: 0, disk_storage: 0, streams: 0, consumer: 0 }
  const server = await startConfiguredNats(
    port,
    `jetstream {}
operator: ${jwt(operator, operator, "operator", {})}
system_account: ${system.getPublicKey()}
resolver: MEMORY
resolver_preload: {
  ${account.getPublicKey()}: ${jwt(operator, account, "account", { limits: unlimited })}
  ${system.getPublicKey()}: ${jwt(operator, system, "account", { limits: noJetStream })}
}`
  )
  return {
    ...server,
    url: `nats://127.0.0.1:${port}`,
    /** A credentials file of a new user, which is valid for so many seconds. */
    credsOf: (seconds: number) => {
      const user = nkeys.createUser()
      const limits = { subs: -1, data: -1, payload: -1 }
      const expires = Math.floor(Date.now() / 1000) + seconds
      return `-----BEGIN NATS USER JWT-----
${jwt(account, user, "user", limits, expires)}
------END NATS USER JWT------

-----BEGIN USER NKEY SEED-----
${textOf(user.getSeed())}
------END USER NKEY SEED------
`
    }
  }
}

it("logs in with the credentials that the file has by then", { timeout: 120_000 }, async () => {
  await using nats = await startNatsWithAccount()
  await using push = await startPushService()
  const file = joined(nats.folder, "bellcast.creds")
  await writeFile(file, nats.credsOf(8))
  const env = { BELLCAST_NATS_CREDS: file }
  await using service = await startService({ natsUrl: nats.url, env })
  const agent = push.subscribe()
  await join([service.url], "news", [agent.subscription])
  const refused = (count: number) =>
    until(
      async () => nats.refusals(),
      (refusals) => refusals >= count
    )
  await refused(2)
  // Neither a missing file nor a half-written one ends the service.
  await rm(file)
  await refused(nats.refusals() + 2)
  const next = nats.credsOf(3_600)
  await writeFile(file, next.slice(0, 60))
  await refused(nats.refusals() + 2)
  await writeFile(`${file}.new`, next)
  await rename(`${file}.new`, file)
  await until(
    async () => service.output(),
    (output) => output.includes("the connection to NATS is back")
  )
  const broadcast = await publish(service.url, "news", { n: 1 })
  assert.deepInclude(await finished(service.url, "news", broadcast), { accepted: 1, delivered: 1 })
})
