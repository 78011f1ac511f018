// By which names the metrics port may be called.
import { assert, it } from "vitest"
import { isOwnHost } from "#monitoring/port.ts"

const names = ["Metrics.example.org"]

it("the metrics port may be called by its address and by names that no site can have", () => {
  for (const host of [
    undefined,
    "",
    "127.0.0.1:9998",
    "10.0.0.11",
    "[::1]:9998",
    "[fd00::1]",
    "localhost:9998",
    "bellcast:9998",
    "LOCALHOST",
    "delivery.bellcast.svc:9998",
    "delivery.bellcast.svc.cluster.local.:9998",
    "metrics.example.org:9998"
  ])
    assert.isTrue(isOwnHost(host, names), host)
})

it("the metrics port may not be called by the name of a foreign site", () => {
  for (const host of [
    "evil.example",
    "evil.example:9998",
    "evil.example.:9998",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "notlocal.evil.example",
    "[evil.example]:9998",
    "evil.example:9998:1",
    "x.metrics.example.org"
  ])
    assert.isFalse(isOwnHost(host, names), host)
})
