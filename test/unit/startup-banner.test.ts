// What the service prints when it is ready: commands that work as they stand there.
import { assert, describe, it } from "@effect/vitest"
import { type Banner, isForTrying, startupBanner } from "../../src/announce.ts"

const start: Banner = {
  url: "http://127.0.0.1:9999/v1/",
  metricsAddress: "127.0.0.1:9998",
  natsHost: "127.0.0.1:4222",
  natsUrlFile: ".bellcast/nats/url",
  vapidPublicKey: "key",
  logins: "basicauth",
  publishers: "every user",
  open: [],
  hasDemo: true,
  isForTrying: true
}

describe("the startup banner", () => {
  it("names the address to listen to, where it is not the default of listeners", () => {
    assert.match(startupBanner(start), /^ *make listen CHANNEL=news$/m)
    const elsewhere = startupBanner({ ...start, url: "http://127.0.0.1:8080/v1/" })
    assert.match(
      elsewhere,
      /^ *make listen CHANNEL=news ARGS="--url http:\/\/127\.0\.0\.1:8080\/v1\/"$/m
    )
    assert.match(elsewhere, /^ *make audit BROADCAST=NUMBER$/m)
  })

  it("keeps the address of the console, its first, within a terminal of 24 lines", () => {
    const lines = startupBanner({ ...start, open: ["metrics"] }).split("\n")
    assert.match(lines.find((line) => line.includes("http"))!, /^ *http:\S+\/v1\/console\/#\/try$/)
    // The last line is that of the cursor.
    assert.isAtMost(lines.length, 25)
  })

  it("shows how to log in to NATS, also from a folder with a strange name", () => {
    const command = (file: string) =>
      /export NATS_URL=.*/.exec(startupBanner({ ...start, natsUrlFile: file }))?.[0]
    assert.equal(command(".bellcast/nats/url"), 'export NATS_URL="$(cat .bellcast/nats/url)"')
    assert.equal(command("my 'own'/url"), `export NATS_URL="$(cat 'my '\\''own'\\''/url')"`)
  })

  it("names the metrics port, or says that it is off", () => {
    assert.match(startupBanner(start), /^ *Metrics, probes +http:\/\/127\.0\.0\.1:9998\/metrics$/m)
    assert.match(
      startupBanner({ ...start, metricsAddress: undefined }),
      /^ *Metrics, probes +off$/m
    )
  })

  it("shows no commands where they would be refused", () => {
    const plain = startupBanner({ ...start, isForTrying: false })
    assert.match(plain, /^ *HTTP API +http:\/\/127\.0\.0\.1:9999\/v1\/$/m)
    assert.match(plain, /Ctrl-C/)
    assert.notMatch(plain, /make|curl/)
    const open = {
      allowLoopbackEndpoints: true,
      channelWritePrincipals: [{ principal: "system.Authenticated", channels: "*" }]
    }
    assert.isTrue(isForTrying(open, [{ name: "basicauth", module: undefined }]))
    assert.isFalse(isForTrying(open, [{ name: "signed", module: undefined }]))
    assert.isFalse(isForTrying(open, [{ name: "basicauth", module: "./own.js" }]))
  })
})
