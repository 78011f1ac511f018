// The closed set of reasons: each is produced somewhere, none other is, and the documents explain each.
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { classify, type PushResponse } from "#delivery/push/classify.ts"
import {
  deadReasons,
  deferReasons,
  goneReasons,
  refusalReasons,
  retryReasons,
  StoredReason,
  strikeReasonOf,
  strikeReasons
} from "#domain/reason.ts"

const now = Date.UTC(2026, 10, 20, 12, 0, 0)

const received = (
  status: number,
  body = "",
  headers: Readonly<Record<string, string>> = {}
): PushResponse => ({ status, body, headers })

const responses: ReadonlyArray<PushResponse> = [
  ...Array.from({ length: 500 }, (_, i) => received(100 + i)),
  received(400, "BadWebPushTopic"),
  received(400, "VapidPkHashMismatch"),
  received(400, "", { "x-wns-error-description": "bad TTL" }),
  ...[
    "ADDRESS_NOT_ALLOWED",
    "CERT_HAS_EXPIRED",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "EHOSTUNREACH",
    "ENDPOINT_NOT_ALLOWED",
    "ENOTFOUND",
    "ERR_CRYPTO_ECDH_INVALID_PUBLIC_KEY",
    "ETIMEDOUT",
    "KEY_RETIRED",
    "UNKNOWN"
  ].map((error) => ({ error }))
]

describe("the reasons", () => {
  it("of responses are those that the classifier produces", () => {
    const produced = responses.map((each) => classify(each, "push.example.com", now).reason)
    assert.sameMembers(
      [...new Set(produced)],
      [...new Set(["accepted", ...goneReasons, ...deadReasons, ...retryReasons, ...refusalReasons])]
    )
  })

  it("of other versions decode", () => {
    const decode = Schema.decodeUnknownSync(StoredReason)
    assert.strictEqual(decode("a-word-of-tomorrow"), "a-word-of-tomorrow")
    assert.throws(() => decode(1))
  })

  it("that count as strikes do so behind attempts-used-up, those of deferrals not behind expired", () => {
    for (const reason of strikeReasons) {
      assert.strictEqual(strikeReasonOf(reason), reason)
      assert.strictEqual(strikeReasonOf(`attempts-used-up:${reason}` as StoredReason), reason)
    }
    for (const reason of deferReasons) assert.isUndefined(strikeReasonOf(`expired:${reason}`))
  })
})
