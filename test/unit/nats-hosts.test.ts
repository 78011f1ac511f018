// What a log may say of a NATS URL.
import { assert, it } from "vitest"
import { hostsOf } from "#nats/connection/connection.ts"

it.for([
  ["nats://user:SECRET@a:4222,nats://user:SECRET@b", "a:4222,b"],
  ["user:SECRET@b:4222", "b:4222"],
  ["tls://TOKEN@nats.example.org", "nats.example.org"],
  ["127.0.0.1:4222, localhost", "127.0.0.1:4222,localhost"]
] as const)("of %s is %s: no password", ([url, hosts]) => {
  assert.equal(hostsOf(url), hosts)
})
