// What a log or a verb may print of a NATS URL.
import { assert, it } from "vitest"
import { hostsOf } from "#log/nats.ts"

it.for([
  ["nats://u:p@a,nats://u:SECRET@b", "a,b"],
  ["u:SECRET@b:4222", "b:4222"],
  ["tls://SECRET@nats.example.org:4443, 127.0.0.1:4222", "nats.example.org:4443,127.0.0.1:4222"],
  ["nats://u:SEC/RET@b", "(no URL)"]
] as const)("of %s is %s", ([url, shown]) => {
  assert.equal(hostsOf(url), shown)
})
