// Who may publish on a channel, as its commands fold.

import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { matchesWildcard } from "#basics/wildcard.ts"
import {
  foldPublishers,
  noPublishers,
  type PublisherCommand,
  type Publishers,
  writeRuleFault,
  writeRuleOf
} from "#domain/publisher.ts"

const put = (principal: string): PublisherCommand => ({ type: "publisher.put/1", principal, at: 1 })
const drop = (principal: string): PublisherCommand => ({
  type: "publisher.delete/1",
  principal,
  at: 1
})
const fold = (commands: ReadonlyArray<PublisherCommand>, from: Publishers = noPublishers) =>
  commands.reduce(
    (publishers, command, i) => foldPublishers(publishers, command, i + 1).publishers,
    from
  )

describe("the publishers of a channel", () => {
  it("are those whose last command named them, however often it is folded", () => {
    const command = fc.record({
      on: fc.boolean(),
      principal: fc.constantFrom("a:1", "a:2", "b:1", "system.Everyone")
    })
    fc.assert(
      fc.property(fc.array(command, { maxLength: 20 }), (list) => {
        const commands = list.map(({ on, principal }) => (on ? put(principal) : drop(principal)))
        const last = new Map(list.map(({ on, principal }) => [principal, on]))
        const wanted = [...last].flatMap(([principal, on]) => (on ? [principal] : [])).sort()
        const folded = fold(commands)
        assert.deepStrictEqual(folded, { v: 1, seq: list.length, principals: wanted })
        assert.strictEqual(fold(commands, folded), folded)
      })
    )
  })

  it("are at most 200 valid principals, and their value always fits the bucket", () => {
    const full = fold(Array.from({ length: 200 }, (_, i) => put(`basicauth:${i}`)))
    assert.match(
      foldPublishers(full, put("basicauth:more"), 201).reason ?? "",
      /at most 200 publishers/
    )
    assert.strictEqual(foldPublishers(full, put("basicauth:7"), 201).reason, undefined)
    assert.lengthOf(foldPublishers(full, put("basicauth:more"), 201).publishers.principals, 200)
    for (const principal of ["", "anna", "system:x", `basicauth:${"x".repeat(300)}`, "a:b c"])
      assert.deepInclude(
        foldPublishers(noPublishers, put(principal), 1),
        { publishers: { ...noPublishers, seq: 1 } },
        principal
      )
  })
})

describe("a rule of the settings", () => {
  it("names a principal, and a pattern of channels where there is one", () => {
    assert.deepStrictEqual(writeRuleOf("oauth:a=b"), { principal: "oauth:a=b", channels: "*" })
    assert.deepStrictEqual(writeRuleOf("news*=group:openid:editor"), {
      principal: "group:openid:editor",
      channels: "news*"
    })
    assert.isUndefined(writeRuleFault("a*=system.Authenticated"))
    assert.isString(writeRuleFault("a*=alice"))
    assert.match(writeRuleFault("token:shop") ?? "", /bellcast token create/)
  })

  it("matches channels as a shell pattern does whose only sign is *", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", "*", "."), maxLength: 8 })
    fc.assert(
      fc.property(text, text, (pattern, channel) => {
        const escaped = pattern.replaceAll(".", "\\.").replaceAll("*", "[^]*")
        assert.strictEqual(
          matchesWildcard(pattern, channel),
          new RegExp(`^${escaped}$`).test(channel)
        )
      })
    )
  })
})
