// The settings of the VAPID subject and key pair: which values are valid.
import { assert, describe, it } from "@effect/vitest"
import webpush from "web-push"
import { keyPairFault } from "#secrets/key-set.ts"
import { developmentSubject, isExample, subjectFault } from "#secrets/secrets.ts"

describe("a VAPID subject", () => {
  it.for([
    "mailto:ops@example.com",
    "mailto:a.b+c@mail.example.co.uk",
    "https://example.com",
    "https://example.com/contact?a=b",
    "https://example.com:8443/contact",
    "mailto:ops@Example.COM",
    "mailto:ops@b\u00fccher.example.com"
  ])("may be %s", (subject) => {
    assert.isUndefined(subjectFault(subject))
  })

  it.for([
    ...[
      "",
      "ops@example.com",
      "mailto:",
      "mailto:ops",
      "mailto:ops@",
      "mailto: ops@example.com",
      "mailto:<ops@example.com>"
    ],
    ...[
      "mailto:ops@exam ple.com",
      "mailto:a@b@example.com",
      "http://example.com",
      "https://",
      "https://exa mple.com",
      "tel:123"
    ],
    ...[
      "mailto:ops@localhost",
      "mailto:ops@printer.local",
      "mailto:ops@intranet",
      "https://intranet/",
      "https://localhost",
      "https://localhost:8443/",
      "https://printer.local/"
    ],
    " mailto:ops@example.com",
    ...[
      "mailto:mailto:ops@example.com",
      "mailto:ops@vault.internal",
      "mailto:ops@nas.home.arpa",
      "mailto:ops@PRINTER.LOCAL",
      "mailto:ops@printer.local.",
      "mailto:ops@bellcast.test",
      "mailto:ops@10.0.0.1",
      "mailto:ops@[10.0.0.1]",
      "mailto:ops@example.com?subject=x",
      "mailto:ops@example.com/"
    ],
    ...[
      "https://10.0.0.1/",
      "https://0x0a000001/",
      "https://[fd00::1]/",
      "https://vault.internal/",
      "https://nas.home.arpa:8443/",
      "https://LOCALHOST/"
    ]
  ])("may not be %j", (subject) => {
    assert.isString(subjectFault(subject))
  })

  it.for([
    developmentSubject,
    "mailto:ops@mail.example.org",
    "https://bellcast.test/contact",
    "https://push.invalid"
  ])("reaches nobody at %s", (subject) => {
    assert.isTrue(isExample(subject))
  })

  it.for(["mailto:ops@example.de", "https://myexample.com", "mailto:ops@test.org"])(
    "may reach somebody at %s",
    (subject) => {
      assert.isFalse(isExample(subject))
    }
  )
})

const pair = webpush.generateVAPIDKeys()
const other = webpush.generateVAPIDKeys()

describe("a VAPID key pair", () => {
  it("is one that web-push makes", () => {
    assert.isUndefined(keyPairFault(pair.publicKey, pair.privateKey))
  })

  const point = Buffer.from(pair.publicKey, "base64url")
  const changed = (first: number) =>
    Buffer.concat([Buffer.from([first]), point.subarray(1)]).toString("base64url")
  it.for([
    ["a public key of somebody else", other.publicKey, pair.privateKey, /does not belong/],
    ["no public key", "", pair.privateKey, /public key must be 65 bytes/],
    [
      "a public key cut short",
      point.subarray(0, 64).toString("base64url"),
      pair.privateKey,
      /public key must be 65 bytes/
    ],
    ["a public key in hybrid form", changed(6), pair.privateKey, /uncompressed/],
    [
      "a compressed public key",
      Buffer.concat([Buffer.from([2]), point.subarray(1, 33)]).toString("base64url"),
      pair.privateKey,
      /65 bytes/
    ],
    ["no private key", pair.publicKey, "", /private key must be 32 bytes/],
    [
      "a private key that is too long",
      pair.publicKey,
      Buffer.alloc(33, 1).toString("base64url"),
      /32 bytes/
    ],
    [
      "a private key of zero",
      pair.publicKey,
      Buffer.alloc(32).toString("base64url"),
      /no P-256 key/
    ],
    [
      "a private key beyond the order of the curve",
      pair.publicKey,
      Buffer.alloc(32, 255).toString("base64url"),
      /no P-256 key/
    ]
  ] as const)("is refused with %s", ([, publicKey, privateKey, why]) => {
    assert.match(keyPairFault(publicKey, privateKey) ?? "", why)
  })
})
