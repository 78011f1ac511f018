// A stream of events while the policy of its reader cannot be asked, and when it knows the reader
// no more.
import { readFileSync, renameSync, writeFileSync } from "node:fs"
import { expect, it } from "vitest"
import { join, until } from "#test/client.ts"
import { follow } from "#test/events.ts"
import { makeFolder } from "#test/folder.ts"
import { startNats } from "#test/nats.ts"
import { startPushService } from "#test/push-service.ts"
import { startService } from "#test/service.ts"

/** A policy that does what the file `mode` says, and writes each call into the file `asked`. */
const policy = `import { appendFileSync, readFileSync } from "node:fs"
export default {
  authenticate: async ({ scheme, token }) => {
    if (scheme !== "acme") return undefined
    appendFileSync("asked", ".")
    const mode = readFileSync("mode", "utf8")
    if (mode === "away") throw new Error("away")
    return mode === "known" ? { user: token } : undefined
  }
}`

it("goes on while the policy is away, and ends when it knows the reader no more", async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  await using folder = await makeFolder({ "acme.mjs": policy, mode: "known", asked: "" })
  await using service = await startService({
    natsUrl: nats.url,
    cwd: folder.path,
    env: {
      BELLCAST_AUTH_POLICIES: "acme=./acme.mjs basicauth",
      BELLCAST_CHANNEL_WRITE_PRINCIPALS: "news=acme:shop"
    }
  })
  const authorization = "Acme shop"
  // At once: half of a mode would be another.
  const be = (mode: "known" | "away" | "nobody") => {
    writeFileSync(`${folder.path}/next`, mode)
    renameSync(`${folder.path}/next`, `${folder.path}/mode`)
  }
  const asked = () => readFileSync(`${folder.path}/asked`).length
  const ask = (path: string, method = "GET", body?: unknown) =>
    fetch(`${service.url}${path}`, {
      method,
      headers: { authorization, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
  const agent = push.subscribe({ script: ["503 retry-after 600"] })
  await join([service.url], "news", [agent.subscription], 1, "reader")
  const sent = await ask("/channels/news", "POST", { data: { n: 1 } })
  const path = `/broadcasts/${((await sent.json()) as { readonly id: string }).id}`
  const stream = await follow(`${service.url}${path}/events`, { authorization })
  expect(stream.status).toBe(200)

  be("away")
  expect((await ask(path)).status).toBe(503)
  const before = asked()
  await until(
    async () => asked(),
    (calls) => calls >= before + 3
  )
  expect(stream.endedAt).toBeUndefined()

  be("known")
  expect((await ask(path, "PATCH", { data: { state: "paused" } })).status).toBe(200)
  await until(
    async () => stream.events,
    (events) => events.at(-1)?.data.state === "paused"
  )

  be("nobody")
  await stream.ended
})
