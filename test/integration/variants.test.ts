// A variant for each reader: by the language of the subscription, also when a push is tried again.
import { jetstream } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { assert, it } from "vitest"
import { auditsOf } from "../support/audit.ts"
import { call, finished, finishedAt, publish, publishAt } from "../support/client.ts"
import { userOf } from "../support/history-commands.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { useService } from "../support/use-service.ts"
import { tokenOf } from "../support/users.ts"

const shared = useService()

const all = { n: "all" }
/** Larger than a message of LOG: in a broadcast to users, these variants come in parts. */
const variants = Object.fromEntries(
  ["de", "pt-BR", "de-AT", "it", "es", "nl", "pl", "sv", "da", "fi"].map((n) => [
    n,
    { n, filler: "x".repeat(3_900) }
  ])
)

/** The audit and its table name the languages of the pushes of a broadcast. */
const checkAudit = async (natsUrl: string, broadcast: string) => {
  const [audit] = await auditsOf(natsUrl, [broadcast])
  assert.sameMembers(
    audit!.pushes.map(({ locale }) => locale),
    ["de", "pt-BR", undefined, undefined]
  )
  const { stdout } = await runCli(["audit", broadcast, "--csv", "--nats", natsUrl])
  assert.match(stdout, /^user,subscription,fate,.*,locale\r\n/)
  assert.match(stdout, /,delivered,201,accepted,2,\d+,pt-BR\r$/m)
  assert.match(stdout, /,delivered,201,accepted,1,\d+,\r$/m)
  for (const args of [[], ["--user", tokenOf("anna")]]) {
    const { stdout } = await runCli(["audit", broadcast, ...args, "--nats", natsUrl])
    assert.match(stdout, /LOCALE/)
    assert.match(stdout, /pt-BR$/m)
  }
}

it("sends each browser the variant in its language, and the audit says which", {
  timeout: 60_000
}, async () => {
  const { nats, service } = shared
  await using push = await startPushService()
  const { url } = service
  // Each of the three broadcasts is refused once.
  const again = Array.from({ length: 3 }, () => ["503 retry-after 1", "201"]).flat()
  const readers = [
    ["de-CH", push.subscribe()],
    ["pt-br", push.subscribe({ script: again })],
    ["fr", push.subscribe()],
    [undefined, push.subscribe()]
  ] as const
  for (const [locale, agent] of readers) {
    const data = { ...agent.subscription, label: "my browser", ...(locale && { locale }) }
    const stored = await call(url, "POST", "/subscriptions", "anna", { data })
    assert.equal(stored.status, 201, JSON.stringify(stored.body))
    assert.deepInclude(stored.body.data, data)
  }
  assert.equal((await call(url, "PUT", "/channels/news/registration", "anna")).status, 202)
  await finished(url, "news", await publish(url, "news", all))
  const { de, "pt-BR": pt } = variants
  const two = { data: all, data_by_locale: { de, "pt-BR": pt } }
  const toChannel = await publishAt(url, "/channels/news", two)
  await finished(url, "news", toChannel)
  const many = { data: all, data_by_locale: variants, to: { channels: ["news"] } }
  const toRecipients = await publishAt(url, "/broadcasts", many)
  await finishedAt(url, `/broadcasts/${toRecipients}`)
  const seen = readers.map(([, { received }]) =>
    received.map(({ text }) => JSON.parse(text).n as string)
  )
  assert.deepEqual(seen, [
    ["all", "de", "de"],
    ["all", "pt-BR", "pt-BR"],
    ["all", "all", "all"],
    ["all", "all", "all"]
  ])
  assert.deepEqual(
    readers.map(([, { attempts }]) => attempts.length),
    [3, 6, 3, 3]
  )
  for (const each of [toChannel, toRecipients]) await checkAudit(nats.url, each)
  const { locales } = (await call(url, "GET", `/broadcasts/${toChannel}`, "publisher")).body.data
  const none = { delivered: 0, retrying: 0, expired: 0, dead: 0, gone: 0, cancelled: 0 }
  assert.deepEqual(locales, {
    de: { ...none, delivered: 1 },
    "pt-BR": { ...none, delivered: 1 },
    data: { ...none, delivered: 2 }
  })
})

it("sends what is for all others where the stored language is no text", {
  timeout: 60_000
}, async () => {
  const { nats, service } = shared
  await using push = await startPushService()
  await using admin = await connectAdmin(nats.url)
  const send = async (subject: string, type: string, body: object) => {
    const made = headers()
    made.set("Bellcast-Type", type)
    await jetstream(admin.nc).publish(subject, JSON.stringify(body), { headers: made })
  }
  const agents = [null, 5, {}, ["de"], "no language tag"].map((locale, i) => ({
    locale,
    user: userOf(i),
    agent: push.subscribe()
  }))
  for (const { agent, locale, user } of agents) {
    const data = { ...agent.subscription, locale }
    const put = { user: "u", id: "a", data, lastModified: 1 }
    await send(`bellcast.cmd.subscription.${user}`, "subscription.put/1", put)
    await send(`bellcast.cmd.registration.stored.${user}`, "registration.put/1", {
      user: "u",
      at: 1
    })
  }
  const body = { data: all, data_by_locale: { de: { n: "de" } } }
  const id = await publishAt(service.url, "/channels/stored", body)
  assert.deepInclude(await finished(service.url, "stored", id), { accepted: 5, delivered: 5 })
  for (const { agent } of agents)
    assert.deepEqual(
      agent.received.map(({ text }) => text),
      ['{"n":"all"}']
    )
})
