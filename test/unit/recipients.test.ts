// Recipients of a broadcast are cut into messages that LOG takes, and joined again without a
// change.

import * as Schema from "effect/Schema"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { partsMax } from "#domain/broadcast.ts"
import {
  Direct,
  firstData,
  partsOf,
  type Recipients,
  recipientsIn,
  usersIn,
  variantsIn
} from "#domain/recipients.ts"
import { channelToken, isInShard, shardPath, shardsAt, type UserToken } from "#streams/tokens.ts"

const userOf = (n: number) => String(n).padStart(22, "u") as UserToken
const many = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => userOf(from + i))

const data = { text: "x".repeat(3_900) }
const locales = ["fr", "de", "pt-BR", "zh-Hant", "es-419", "it"]
const variants = Object.fromEntries(locales.map((locale) => [locale, data]))

describe("recipients", () => {
  it("are the same after they were cut into parts, each of which fits into a message", () => {
    const list = (max: number) => fc.nat(max)
    fc.assert(
      fc.property(list(1_000), list(1_000), list(100), (users, except, channels) => {
        const to: Recipients = {
          channels: Array.from({ length: channels }, (_, i) =>
            channelToken(`${"ü".repeat(120)}${i}`)
          ),
          users: many(0, users),
          except: many(5_000, except)
        }
        const parts = partsOf(to, variants)
        assert.deepEqual([recipientsIn(parts), variantsIn(parts)], [to, variants])
        const first = parts.findIndex((part) => part.data_by_locale !== undefined)
        assert.equal(Object.keys(parts[first]!.data_by_locale!)[0], "de", "the first tag first")
        assert.deepEqual(recipientsIn(parts.slice(0, first + 1)), to, "variants come last")
        for (const part of parts) {
          assert.isBelow(JSON.stringify(part).length, 24.1 * 1024)
          assert.isTrue(Schema.is(Direct)(part))
        }
      }),
      { numRuns: 30 }
    )
  })

  it("are cut into no more parts than a message may name, each of them once", () => {
    const places = [..."abcdefghijklmnopqrst"].map((letter) => `${letter}a`)
    const parts = partsOf(
      {
        channels: Array.from({ length: 100 }, (_, i) => channelToken(`${"ü".repeat(126)}${i}`)),
        users: many(0, 1_000),
        except: many(5_000, 1_000)
      },
      Object.fromEntries(places.map((locale) => [locale, data]))
    )
    assert.isAbove(parts.length, 8)
    const names = (...parts: ReadonlyArray<number>) => Schema.is(Direct)({ parts })
    const sequences = Array.from({ length: partsMax }, (_, i) => i + 1)
    assert.isTrue(names(...sequences.slice(0, parts.length - 1)))
    assert.isTrue(names(...sequences))
    assert.isFalse(names(...sequences, partsMax + 1))
    assert.isFalse(names(1, 2, 1))
    assert.isFalse(names(0))
  })

  it("are shown by the data, or else by the first variant in the order of its tag", () => {
    const [de, fr] = [{ title: "Feuer" }, { title: "Feu" }]
    const data_by_locale = { fr, de, ar: {} }
    assert.equal(firstData({ data: fr, data_by_locale }), fr)
    assert.equal(firstData({ data: {}, data_by_locale }), de)
    assert.equal(firstData({ data_by_locale }), de)
    assert.isUndefined(firstData({ data: {} }))
  })

  it("name each user of a shard once, but those who are excepted", () => {
    const [a, b, c, d] = many(0, 4) as [UserToken, UserToken, UserToken, UserToken]
    const to = { channels: [], users: [a, b], except: [b, c] }
    assert.deepEqual(usersIn(to, "all", [a, c, d, d]), [a, d])
    const other = shardPath(a).startsWith("0") ? "1" : "0"
    assert.deepEqual(usersIn(to, other, [d]), [d])
  })

  it("are in one shard of each depth", () => {
    const alphabet = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"]
    const user = fc.string({ unit: fc.constantFrom(...alphabet), minLength: 22, maxLength: 22 })
    fc.assert(
      fc.property(user, (token) => {
        for (const depth of [0, 1, 2])
          assert.lengthOf(
            shardsAt(depth).filter((shard) => isInShard(token as UserToken, shard)),
            1
          )
      })
    )
  })
})
