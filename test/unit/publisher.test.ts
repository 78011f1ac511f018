// Who may publish on a channel, as its commands fold.

import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { matchesWildcard } from "#basics/wildcard.ts"
import {
  foldPublishers,
  isOpen,
  noPublishers,
  type PublisherCommand,
  type Publishers,
  registerRuleFault,
  registerRuleOf,
  writeRuleFault,
  writeRuleOf
} from "#domain/publisher.ts"

type Right = "publisher" | "registrar"
const put = (principal: string, right: Right = "publisher"): PublisherCommand => ({
  type: `${right}.put`,
  principal,
  at: 1
})
const drop = (principal: string, right: Right = "publisher"): PublisherCommand => ({
  type: `${right}.delete`,
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
      right: fc.constantFrom<Right>("publisher", "registrar"),
      principal: fc.constantFrom("a:1", "a:2", "b:1", "system.Everyone")
    })
    fc.assert(
      fc.property(fc.array(command, { maxLength: 20 }), (list) => {
        const commands = list.map(({ on, principal, right }) =>
          on ? put(principal, right) : drop(principal, right)
        )
        const wanted = (of: Right) => {
          const mine = list.filter(({ right }) => right === of)
          const last = new Map(mine.map(({ on, principal }) => [principal, on]))
          return [...last].flatMap(([principal, on]) => (on ? [principal] : [])).sort()
        }
        const folded = fold(commands)
        assert.deepStrictEqual(folded, {
          v: 1,
          seq: list.length,
          principals: wanted("publisher"),
          registrars: wanted("registrar")
        })
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
    assert.isString(foldPublishers(full, put("basicauth:more", "registrar"), 201).reason)
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

  it("closes the channels that its pattern matches, up to the first equals sign", () => {
    assert.deepStrictEqual(registerRuleOf("a:b*=oauth:c=d"), {
      principal: "oauth:c=d",
      channels: "a:b*"
    })
    for (const fine of ["vip=", "*=", "a=system.Authenticated", "a=group:openid:staff"])
      assert.isUndefined(registerRuleFault(fine), fine)
    // Without a pattern all channels would be closed, perhaps by mistake.
    for (const wrong of ["vip", "=", "=signed:42", "signed:42", "vip=alice", "vip=token:shop"])
      assert.isString(registerRuleFault(wrong), wrong)
    const rules = ["orders-*=signed:1", "vip="].map(registerRuleOf)
    assert.deepStrictEqual(
      ["orders-1", "orders", "vip", "vip2"].map((channel) => isOpen(rules, channel)),
      [false, true, false, true]
    )
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
