// The examples in RFC 8188, RFC 8291 and RFC 8292 against the code that the simulator and `bellcast
// listen` use.

import { assert, describe, it } from "@effect/vitest"
import ece from "http_ece"
import { checkVapid, openPush, receiverKeysFrom, senderKeyOf } from "#cli/listen/push-receiver.ts"

const bytes = (base64url: string) => Buffer.from(base64url, "base64url")

const flip = (body: Buffer, at: number) => {
  const changed = Buffer.from(body)
  changed[at] = (changed[at] ?? 0) ^ 1
  return changed
}

describe("RFC 8291 section 5 and appendix A", () => {
  const keys = receiverKeysFrom(
    "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94",
    "BTBZMqHH6r4Tts7J_aSIgg"
  )
  const body = bytes(
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vC" +
      "YLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A" +
      "_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
  )

  it("derives the user agent's public key from its private key", () => {
    assert.strictEqual(
      keys.p256dh,
      "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    )
  })

  it("opens the 144-byte body and names its sender", () => {
    assert.strictEqual(body.length, 144)
    assert.strictEqual(
      senderKeyOf(body),
      "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8"
    )
    assert.strictEqual(openPush(keys, body).toString(), "When I grow up, I want to be a watermelon")
  })

  it("refuses the body when a byte of salt, sender key, text or tag differs", () => {
    for (const at of [0, 20, 40, 90, 143])
      assert.throws(() => openPush(keys, flip(body, at)), Error)
  })

  it("refuses the body under another auth secret, cut short, or in a second record", () => {
    assert.throws(() => openPush({ ...keys, auth: "AAAAAAAAAAAAAAAAAAAAAA" }, body), Error)
    assert.throws(() => openPush(keys, body.subarray(0, 102)), /at least 103 bytes/)
    const twoRecords = Buffer.from(body)
    twoRecords.writeUInt32BE(57, 16)
    assert.throws(() => openPush(keys, twoRecords), /single record/)
  })
})

describe("RFC 8188 section 3", () => {
  const walrus = (body: string, key: string) =>
    ece.decrypt(bytes(body), { version: "aes128gcm", key: bytes(key) }).toString()

  it("opens the single-record example of 3.1", () => {
    const body = "I1BsxtFttlv3u_Oo94xnmwAAEAAA-NAVub2qFgBEuQKRapoZu-IxkIva3MEB1PD-ly8Thjg"
    assert.strictEqual(walrus(body, "yqdlZ-tYemfogSmv7Ws5PQ"), "I am the walrus")
    assert.throws(() => walrus(body, "yqdlZ-tYemfogSmv7Ws5PA"), Error)
  })
})

describe("RFC 8292 section 2.4", () => {
  const t =
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQ" +
    "iLCJleHAiOjE0NTM1MjM3NjgsInN1YiI6Im1haWx0bzpw" +
    "dXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1" +
    "JrErtmysazNjjvW2L9OkSSHzvoD1oA"
  const k =
    "BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs"
  const expiresMillis = 1_453_523_768_000
  const dayMillis = 24 * 3600 * 1000
  const expected = {
    audience: "https://push.example.net",
    nowMillis: expiresMillis - 1,
    applicationServerKey: k
  }
  const status = async (header: string, change: Partial<typeof expected> = {}) => {
    const verdict = await checkVapid(header, { ...expected, ...change })
    return verdict.ok ? 201 : verdict.status
  }

  it("accepts the example, whatever the order, spacing and further parameters", async () => {
    const verdict = await checkVapid(`vapid t=${t}, k=${k}`, expected)
    assert.deepStrictEqual(verdict, {
      ok: true,
      applicationServerKey: k,
      subject: "mailto:push@example.com"
    })
    for (const header of [`vapid k=${k},t=${t}`, `Vapid t=${t} , k=${k}, x=1`])
      assert.strictEqual(await status(header), 201)
  })

  it("knows only the last 24 hours of the token's life", async () => {
    const header = `vapid t=${t}, k=${k}`
    assert.strictEqual(await status(header, { nowMillis: expiresMillis - dayMillis }), 201)
    assert.strictEqual(await status(header, { nowMillis: expiresMillis - dayMillis - 1 }), 403)
    assert.strictEqual(await status(header, { nowMillis: expiresMillis }), 403)
  })

  it("refuses another origin, key, signature or algorithm with 403", async () => {
    const header = `vapid t=${t}, k=${k}`
    const otherKey =
      "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8"
    assert.strictEqual(await status(header, { audience: "https://push.example.net:8443" }), 403)
    assert.strictEqual(await status(header, { applicationServerKey: otherKey }), 403)
    assert.strictEqual(
      await status(`vapid t=${t}, k=${otherKey}`, { applicationServerKey: otherKey }),
      403
    )
    assert.strictEqual(await status(header.replace(".i3CY", ".i3CZ")), 403)
    assert.strictEqual(
      await status(
        header.replace(
          "eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9",
          "eyJ0eXAiOiJKV1QiLCJhbGciOiJub25lIn0"
        )
      ),
      403
    )
    assert.strictEqual(await status(`vapid t=${t}, k=${k.slice(0, -4)}`), 403)
  })

  it("answers 401 where there is no well-formed vapid header", async () => {
    const malformed = [
      "",
      "vapid",
      `Bearer ${t}`,
      `WebPush ${t}`,
      `vapid t=${t}`,
      `vapid k=${k}`,
      `vapid t=${t} k=${k}`,
      `vapid t=${t}, t=${t}, k=${k}`
    ]
    for (const header of malformed) assert.strictEqual(await status(header), 401, header)
  })
})
