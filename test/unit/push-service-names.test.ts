// Outcomes name the push service: of those of the browsers, and of no other host.
import { assert, it } from "@effect/vitest"
import type { Target } from "#delivery/attempt.ts"
import { cancelledEnd, resultOf, unsentResult } from "#delivery/jobs/result.ts"
import type { BroadcastRef } from "#domain/job.ts"
import type { UserToken } from "#streams/tokens.ts"

const ref: BroadcastRef = {
  broadcast: 1,
  channel: "news",
  acceptedAt: 0,
  expiresAt: 60_000,
  urgency: "normal"
}
const attempt = { kind: "delivered", reason: "accepted", decidedBy: "response", millis: 1 } as const
const keys = { auth: "", p256dh: "" }

const serviceAt = (endpoint: string) => {
  const stored = { seq: 1, lastModified: 1, data: { endpoint, keys } }
  const target: Target = { user: "u" as UserToken, id: "s", stored }
  const made = { target, ref, attempt, number: 1, at: 1, baseMillis: 1, random: 0 }
  const { service } = resultOf(made)
  assert.strictEqual(unsentResult(target, 0, 1, cancelledEnd).service, service)
  return service
}

it("an outcome has the name of the push service, where it is a known one", () => {
  assert.strictEqual(serviceAt("https://fcm.googleapis.com/fcm/send/x"), "google")
  assert.strictEqual(serviceAt("https://jmt17.google.com/x"), "google")
  assert.strictEqual(serviceAt("https://updates.push.services.mozilla.com/x"), "mozilla")
  assert.strictEqual(serviceAt("https://web.push.apple.com/x"), "apple")
  assert.strictEqual(serviceAt("https://api.push.apple.com/x"), "apple")
  assert.strictEqual(serviceAt("https://wns2-ch1p.notify.windows.com/x"), "microsoft")
  for (const host of ["push.example.org", "127.0.0.1:9", "notify.windows.com.example.org"])
    assert.isUndefined(serviceAt(`https://${host}/x`), host)
})
