// The causes of more dead pushes than one response counts.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken, type UserToken } from "#streams/tokens.ts"
import { call } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startService } from "../support/service.ts"
import { idOf } from "../support/users.ts"

const count = 10_001
const channel = channelToken("news")
const user = "u".repeat(22) as UserToken

const fill = Effect.gen(function* () {
  const log = yield* EventLog
  const letter = (n: number) =>
    log.append("work", {
      subject: subjects.deadLetter(channel, 1, user, `s${n}`),
      type: "dead/1",
      body: {
        ...{ broadcast: 1, channel, acceptedAt: 1, expiresAt: 2, urgency: "normal" },
        ...{ user, subscription: `s${n}`, generation: 1, reason: "refused" },
        ...{ status: 400, attempts: 1, at: n }
      }
    })
  const numbers = Array.from({ length: count }, (_, n) => n + 1)
  yield* Effect.forEach(numbers, letter, { concurrency: 256, discard: true })
})

it("counts dead pushes in pages, and takes no limit", { timeout: 120_000 }, async () => {
  await using nats = await startNats({ syncAlways: false })
  const env = { BELLCAST_OPERATOR_PRINCIPALS: idOf("operator") }
  await using service = await startService({ natsUrl: nats.url, roles: "gateway,projection", env })
  const layer = natsLayer({ url: nats.url, name: "test" })
  await Effect.runPromise(fill.pipe(Effect.provide(layer)))
  const first = await call(service.url, "GET", "/dead?broadcast=1", "operator")
  assert.deepEqual(
    first.body.data.map(({ pushes }: { readonly pushes: number }) => pushes),
    [10_000]
  )
  const next = first.headers.get("next-page")!
  assert.match(next, /\/v1\/dead\?broadcast=1&_token=[^&]+$/)
  const second = await call(service.url, "GET", next.slice(service.url.length), "operator")
  assert.deepInclude(second.body.data[0], { pushes: 1, first_at: count, last_at: count })
  assert.isNull(second.headers.get("next-page"))
})
