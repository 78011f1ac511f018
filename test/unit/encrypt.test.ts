// Push encryption against the RFC's own example and against an independent decrypter.
import { createPrivateKey, createPublicKey, diffieHellman } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import ece from "http_ece"
import {
  makeReceiverKeys,
  openPush,
  receiverKeysFrom,
  senderKeyOf
} from "#cli/listen/push-receiver.ts"
import {
  freshKeyPair,
  type KeyPair,
  makePairs,
  pad,
  recipientOf,
  seal
} from "#delivery/push/encrypt.ts"

const bytes = (base64url: string) => Buffer.from(base64url, "base64url")

const headerBytes = 86
const plaintextBytesMax = 3_993

const receiver = makeReceiverKeys()
const sealed = (plaintext: Uint8Array, keys = receiver) =>
  seal(pad(plaintext), recipientOf(keys.p256dh, keys.auth), freshKeyPair())

describe("a sealed message", () => {
  it("is the example of RFC 8291 appendix A, byte for byte, given its key pair and salt", () => {
    const publicKey = bytes(
      "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8"
    )
    const [x, y] = [publicKey.toString("base64url", 1, 33), publicKey.toString("base64url", 33)]
    const d = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
    const pair: KeyPair = {
      publicKey,
      privateKey: createPrivateKey({
        format: "jwk",
        key: { kty: "EC", crv: "P-256", d, x, y }
      })
    }
    const { auth, p256dh } = receiverKeysFrom(
      "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94",
      "BTBZMqHH6r4Tts7J_aSIgg"
    )
    const plaintext = pad(Buffer.from("When I grow up, I want to be a watermelon"))
    assert.strictEqual(
      plaintext.toString("base64url"),
      "V2hlbiBJIGdyb3cgdXAsIEkgd2FudCB0byBiZSBhIHdhdGVybWVsb24C"
    )
    const body = seal(plaintext, recipientOf(p256dh, auth), pair, bytes("DGv6ra1nlYgDCS1FRnbzlw"))
    assert.strictEqual(body.length, 144)
    assert.strictEqual(
      body.toString("base64url"),
      "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vC" +
        "YLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A" +
        "_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )
  })

  it("opens to its plaintext for the receiver alone, whatever the length and the keys", () => {
    const length = fc.oneof(
      fc.constantFrom(0, 1, 15, 16, 17, plaintextBytesMax),
      fc.integer({ min: 0, max: plaintextBytesMax })
    )
    fc.assert(
      fc.property(length, fc.nat(255), (length, seed) => {
        const keys = makeReceiverKeys()
        const plaintext = Buffer.from(Array.from({ length }, (_, i) => (seed + i * 7) & 255))
        const body = sealed(plaintext, keys)
        assert.strictEqual(body.length, length + 103)
        const authSecret = bytes(keys.auth)
        assert.isTrue(
          ece
            .decrypt(body, { version: "aes128gcm", privateKey: keys.pair, authSecret })
            .equals(plaintext)
        )
        assert.throws(() => openPush({ ...keys, pair: receiver.pair }, body), Error)
        assert.throws(() => openPush({ ...keys, auth: receiver.auth }, body), Error)
      })
    )
  })

  it("has one record of at most 4096 bytes, and names its sender in the header", () => {
    const body = sealed(Buffer.alloc(plaintextBytesMax))
    assert.strictEqual(body.length, 4096)
    assert.strictEqual(body.readUInt32BE(16), 4096)
    assert.strictEqual(body[20], 65)
    assert.strictEqual(body[21], 4)
    assert.strictEqual(openPush(receiver, body).length, plaintextBytesMax)
  })

  it("has a key pair and a salt of its own, also for the same receiver and text", () => {
    const bodies = Array.from({ length: 600 }, () => sealed(Buffer.from("same")))
    const distinct = (of: (body: Buffer) => string) => new Set(bodies.map(of)).size
    assert.strictEqual(
      distinct((body) => body.toString("hex", 0, 16)),
      bodies.length
    )
    assert.strictEqual(distinct(senderKeyOf), bodies.length)
    assert.strictEqual(
      distinct((body) => body.toString("hex", headerBytes)),
      bodies.length
    )
  })

  it("keeps its salt when later messages draw theirs", () => {
    const first = sealed(Buffer.from("first"))
    for (let i = 0; i < 600; i++) sealed(Buffer.from("later"))
    assert.strictEqual(openPush(receiver, first).toString(), "first")
  })

  it("cannot be made for a key that is no point on the curve", () => {
    const point = bytes(receiver.p256dh)
    const offCurve = Buffer.from(point)
    offCurve[64] = (offCurve[64] ?? 0) ^ 1
    for (const key of [
      offCurve,
      Buffer.concat([Buffer.from([4]), Buffer.alloc(64)]),
      point.subarray(0, 64),
      Buffer.alloc(0)
    ]) {
      assert.throws(() => recipientOf(key.toString("base64url"), receiver.auth), Error)
    }
  })
})

describe("a key pair for one message", () => {
  it("is a point on the curve with its private key, and never the one before", () => {
    const pairs = Array.from({ length: 50 }, freshKeyPair)
    assert.strictEqual(
      new Set(pairs.map(({ publicKey }) => publicKey.toString("hex"))).size,
      pairs.length
    )
    for (const { privateKey, publicKey } of pairs) {
      const secret = diffieHellman({
        privateKey,
        publicKey: recipientOf(receiver.p256dh, receiver.auth).key
      })
      assert.isTrue(receiver.pair.computeSecret(publicKey).equals(secret))
      assert.isTrue(
        recipientOf(publicKey.toString("base64url"), receiver.auth).key.equals(
          createPublicKey(privateKey)
        )
      )
    }
  })
})

describe("the key pairs of one batch", () => {
  it("are never shared by two messages to one user, and are as few as possible", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 32 }), (users) => {
        const pairOf = makePairs()
        const named = users.map((user) => `${user} ${pairOf(user).publicKey.toString("hex")}`)
        assert.strictEqual(new Set(named).size, users.length)
        const most = Math.max(0, ...[..."abcd"].map((u) => users.filter((v) => v === u).length))
        assert.strictEqual(new Set(named.map((name) => name.slice(2))).size, most)
      }),
      { numRuns: 20 }
    )
  })

  it("are other ones in the next batch", () => {
    assert.isFalse(makePairs()("a").publicKey.equals(makePairs()("a").publicKey))
  })
})
