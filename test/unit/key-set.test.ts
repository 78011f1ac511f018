// The set of VAPID key pairs: its setting, rotation and retirement.
import { assert, describe, it } from "@effect/vitest"
import webpush from "web-push"
import {
  currentKey,
  formatFormer,
  parseFormer,
  retired,
  rotated,
  usableKeys
} from "#secrets/key-set.ts"
import { keySetOf, pairOf, states } from "../support/key-sets.ts"

const [a, b, c] = [
  webpush.generateVAPIDKeys(),
  webpush.generateVAPIDKeys(),
  webpush.generateVAPIDKeys()
]
const first = keySetOf(a)

describe("former keys in a setting", () => {
  it("are pairs, or retired ones, the oldest first", () => {
    const { faults, keys } = parseFormer(
      ` ${a.publicKey}:${a.privateKey},\n${b.publicKey}:retired, `,
      true
    )
    assert.deepStrictEqual(faults, [])
    assert.deepStrictEqual(states(keys), [
      [a.publicKey, "former", a.privateKey],
      [b.publicKey, "retired", undefined]
    ])
    assert.strictEqual(formatFormer(keys), `${a.publicKey}:${a.privateKey},${b.publicKey}:retired`)
  })

  it("need no private key where nothing is signed, and are not held there", () => {
    const { faults, keys } = parseFormer(
      `${a.publicKey},${b.publicKey}:${b.privateKey},${c.publicKey}:retired`,
      false
    )
    assert.deepStrictEqual(faults, [])
    assert.deepStrictEqual(states(keys), [
      [a.publicKey, "former", undefined],
      [b.publicKey, "former", undefined],
      [c.publicKey, "retired", undefined]
    ])
  })

  it.for([
    ["no private key", `${a.publicKey}`, /must be <public key>:<private key>/],
    ["too many parts", `${a.publicKey}:${a.privateKey}:retired`, /must be <public key>/],
    ["an empty private key", `${a.publicKey}:`, /private key must be 32 bytes/],
    ["the private key of another", `${a.publicKey}:${b.privateKey}`, /does not belong/],
    ["half a public key", `${a.publicKey.slice(0, 40)}:retired`, /65 bytes/],
    [
      "a public key off the curve",
      `${Buffer.concat([Buffer.from([4]), Buffer.alloc(64, 1)]).toString("base64url")}:retired`,
      /no point/
    ],
    ["a public key in another spelling", `${a.publicKey}=:${a.privateKey}`, /65 bytes/]
  ] as const)("are refused with %s, by their place only", ([, entry, why]) => {
    const { faults, keys } = parseFormer(`${c.publicKey}:${c.privateKey},${entry}`, true)
    assert.lengthOf(faults, 1)
    assert.match(faults[0]!, why)
    assert.match(faults[0]!, /^entry 2: /)
    for (const { privateKey } of [a, b, c]) assert.notInclude(faults[0]!, privateKey)
    assert.deepStrictEqual(states(keys), [[c.publicKey, "former", c.privateKey]])
  })
})

describe("a set", () => {
  it("has at most 26 keys that sign", () => {
    const text = (count: number) =>
      Array.from({ length: count }, () => webpush.generateVAPIDKeys().publicKey).join(",")
    assert.deepStrictEqual(parseFormer(`${text(25)},${a.publicKey}:retired`, false).faults, [])
    assert.deepStrictEqual(parseFormer(text(26), false).faults, ["at most 25 that are not retired"])
  })
})

describe("a rotation", () => {
  it("makes the new pair current and keeps the former one", () => {
    const set = rotated(rotated(first, pairOf(b), 1), pairOf(c), 2)
    assert.deepStrictEqual(states(set), [
      [a.publicKey, "former", a.privateKey],
      [b.publicKey, "former", b.privateKey],
      [c.publicKey, "current", c.privateKey]
    ])
    assert.strictEqual(currentKey(set).publicKey, c.publicKey)
    assert.deepStrictEqual(usableKeys(set), [a.publicKey, b.publicKey, c.publicKey])
  })
})

describe("a retirement", () => {
  it("forgets the private key and keeps the place", () => {
    const set = retired(rotated(first, pairOf(b), 1), a.publicKey, true)
    assert.deepStrictEqual(states(set), [
      [a.publicKey, "retired", undefined],
      [b.publicKey, "current", b.privateKey]
    ])
    assert.deepStrictEqual(usableKeys(set), [b.publicKey])
  })

  it("of a key that was lost notes it, and as the oldest only if it was", () => {
    const lost = [c.publicKey, "retired", undefined]
    const [former, current] = [
      [a.publicKey, "former", a.privateKey],
      [b.publicKey, "current", b.privateKey]
    ]
    const set = rotated(first, pairOf(b), 1)
    assert.deepStrictEqual(states(retired(set, c.publicKey, true)), [lost, former, current])
    assert.deepStrictEqual(states(retired(set, c.publicKey, false)), [former, lost, current])
  })
})
