// What may stand in a NATS URL and beside it, and what a log or a verb may print of it.
import { assert, it } from "vitest"
import { hostsOf } from "#nats/connection/connection.ts"
import { natsTlsFault, natsUrlFault } from "#settings/addresses.ts"

it.for([
  ["nats://u:p@a,nats://u:SECRET@b", "a,b"],
  ["u:SECRET@b:4222", "b:4222"],
  ["tls://SECRET@nats.example.org:4443, 127.0.0.1:4222", "nats.example.org:4443,127.0.0.1:4222"],
  ["nats://u:SEC/RET@b", "(no URL)"]
] as const)("of %s is %s", ([url, shown]) => {
  assert.equal(hostsOf(url), shown)
})

it.for([
  "127.0.0.1:4222",
  "tls://a,TLS://b:1",
  "u:p@a",
  "nats://TOKEN@a/",
  "u:p@a,u:p@b",
  "u:p%40ss%2Fw%25rd@a:4222, b"
])("%s may be set", (url) => {
  assert.equal(natsUrlFault(url), undefined)
})

it.for([
  "",
  "a,",
  "http://a",
  "nats://u:p/w@a",
  "nats://u:1/w@a",
  "nats://u:1?w@a",
  "nats://u:1#w@a",
  "nats://u:100%@a",
  "nats://u:p,w@a",
  "not a url"
])("%s may not, and is not quoted", (url) => {
  const fault = natsUrlFault(url)
  assert.match(fault ?? "", /^Expected host:port or user:password@host:port, /)
  if (url.length > 2) assert.notInclude(fault, url)
})

it.for(["nats://a,tls://b", "tls://u:p@a,b:4222"])("%s may not: it mixes both", (url) => {
  assert.equal(natsUrlFault(url), "Expected tls:// before every address or before none")
})

it.for(["u:p@a,u:q@b", "u:p@a,v:p@b", "a,u:p@b", "TOKEN@a,OTHER@b"])(
  "%s may not: only the first login would be used",
  (url) => {
    const fault = "Expected one login: that of the first address is used for all; "
    assert.equal(natsUrlFault(url), `${fault}write it there, no other`)
  }
)

const beside = ": Expected tls:// in BELLCAST_NATS_URL beside it"
it.for([
  [undefined, {}, undefined],
  ["nats://a", {}, undefined],
  ["tls://a", { ca: "c", cert: "d", key: "k" }, undefined],
  [undefined, { ca: "c" }, `BELLCAST_NATS_TLS_CA${beside}`],
  ["a", { cert: "d", key: "k" }, `BELLCAST_NATS_TLS_CERT, BELLCAST_NATS_TLS_KEY${beside}`],
  ["tls://a", { key: "k" }, "BELLCAST_NATS_TLS_CERT, BELLCAST_NATS_TLS_KEY: Expected both or none"]
] as const)("files for TLS beside %s: %j", ([url, files, fault]) => {
  assert.equal(natsTlsFault(url, files), fault)
})
