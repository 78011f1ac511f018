// What the service prints when it is ready: commands that work as they stand there.
import { assert, describe, it } from "@effect/vitest"
import { story } from "../../src/story.ts"

describe("the story", () => {
  it("names the address to listen to where it is not the one that listeners take by themselves", () => {
    assert.match(
      story("http://127.0.0.1:9999/v1/", "nats://x", "key", true),
      /^ *make listen CHANNEL=news$/m
    )
    const elsewhere = story("http://127.0.0.1:8080/v1/", "nats://x", "key", true)
    assert.match(
      elsewhere,
      /^ *make listen CHANNEL=news ARGS="--url http:\/\/127\.0\.0\.1:8080\/v1\/"$/m
    )
    assert.match(elsewhere, /^ *make audit BROADCAST=NUMBER$/m)
  })

  it("shows no commands where they would be refused", () => {
    const plain = story("http://127.0.0.1:9999/v1/", "nats://x", "key", false)
    assert.match(plain, /^ *HTTP API +http:\/\/127\.0\.0\.1:9999\/v1\/$/m)
    assert.match(plain, /Ctrl-C/)
    assert.notMatch(plain, /make|curl/)
  })
})
