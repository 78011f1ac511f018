// A variant for each reader: by the language of the subscription, also when a push is tried again.
import { assert, it } from "vitest"
import { auditsOf } from "../support/audit.ts"
import { call, finished, publish, publishAt, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"

it("sends each browser the variant in its language, and the audit says which", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  await using service = await startService({ natsUrl: nats.url })
  const { url } = service
  const again = ["503 retry-after 1", "201"]
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
  // Larger than a message of LOG: the variants of a broadcast to users come in parts.
  const filler = "x".repeat(3_900)
  const data_by_locale = Object.fromEntries(
    ["de", "pt-BR", "de-AT", "it", "es", "nl", "pl", "sv", "da", "fi"].map((n) => [
      n,
      { n, filler }
    ])
  )
  const id = await publish(url, "news", { n: "all" }, {})
  await finished(url, "news", id)
  const { de, "pt-BR": pt } = data_by_locale
  const toChannel = await publishAt(url, "/channels/news", {
    data: { n: "all" },
    data_by_locale: { de, "pt-BR": pt }
  })
  await finished(url, "news", toChannel)
  const toBoth = await publishAt(url, "/broadcasts", {
    data: { n: "all" },
    data_by_locale,
    to: { channels: ["news"] }
  })
  await until(
    () => call(url, "GET", `/broadcasts/${toBoth}`, "publisher"),
    ({ body }) => body.data?.finished === true
  )
  const seen = readers.map(([, { received }]) =>
    received.map(({ text }) => JSON.parse(text).n as string)
  )
  assert.deepEqual(seen, [
    ["all", "de", "de"],
    ["all", "pt-BR", "pt-BR"],
    ["all", "all", "all"],
    ["all", "all", "all"]
  ])
  for (const each of [toChannel, toBoth]) {
    const [audit] = await auditsOf(nats.url, [each])
    assert.sameMembers(
      audit!.pushes.map(({ locale }) => locale),
      ["de", "pt-BR", undefined, undefined]
    )
    const { stdout } = await runCli(["audit", each, "--nats", nats.url])
    assert.match(stdout, /LOCALE/)
    assert.match(stdout, /pt-BR/)
  }
})
