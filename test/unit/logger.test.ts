// What a log line may say of a URL.
import { assert, it } from "vitest"
import { withoutSecrets } from "#telemetry/logger.ts"

it.for([
  ["POST https://fcm.googleapis.com/fcm/send/SECRET failed", "POST https://fcm.googleapis.com/... failed"],
  ["https://h?token=SECRET", "https://h/..."],
  ["https://user:SECRET@h:8443/x", "https://h:8443/..."],
  ["nats://user:SECRET@a:4222,nats://b", "nats://a:4222/..."],
  ["nothing to hide", "nothing to hide"]
] as const)("of %s is %s", ([text, said]) => {
  assert.equal(withoutSecrets(text), said)
})
