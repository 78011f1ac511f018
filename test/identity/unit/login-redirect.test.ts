// To which pages a login may return, and how mail addresses become one user.
import { assert, describe, it } from "vitest"
import { hostPatternFault, redirectFault, withError, withToken } from "#identity/login/pages.ts"
import { brokerUrl } from "#identity/login/portier-login.ts"
import { normalAddress } from "#identity/principals.ts"

const hosts = ["app.example.org", "*.example.net", "localhost:3000"]

describe("a login", () => {
  for (const allowed of [
    "https://app.example.org",
    "https://app.example.org/",
    "HTTPS://APP.example.org/page?a=b#token=",
    "https://a.b.example.net/#",
    "http://localhost:3000/#/login/"
  ])
    it(`may return to ${allowed}`, () => assert.isUndefined(redirectFault(allowed, hosts)))

  it("may return to the console with any fragment, and to nothing else on its host", () => {
    const page = "https://desk.example.org/v1/console/"
    for (const text of [page, `${page}#token=`])
      assert.isUndefined(redirectFault(text, hosts, page))
    for (const text of [`${page}x`, `${page}?a=b`, "https://desk.example.org/", `${page}../`, ""])
      assert.isString(redirectFault(text, hosts, page))
    assert.isString(redirectFault(page, hosts))
  })

  for (const refused of [
    "",
    "/page",
    "//app.example.org/",
    "//evil.example",
    "https:app.example.org",
    "https:/app.example.org",
    "https:///app.example.org",
    "https:\\\\app.example.org",
    "https://evil.example\\@app.example.org",
    "https://evil.example\\.app.example.org",
    "https://app.example.org@evil.example",
    "https://app.example.org:x@evil.example/",
    "https://@app.example.org/",
    "https://anna@app.example.org/",
    "https://evil.example/app.example.org",
    "https://evil.example?app.example.org",
    "https://evil.example#app.example.org",
    "https://app.example.org.evil.example/",
    "https://evilapp.example.org/",
    "https://app.example.org:8443/",
    "https://app.example.org./",
    "https://example.net/",
    "https://evil.example/.example.net",
    "https://evil.example%2f.example.net/",
    "http://app.example.org/",
    "https://localhost/",
    "http://localhost:3001/",
    "javascript:alert(1)//app.example.org",
    "data:text/html,app.example.org",
    " https://app.example.org/",
    "https://app.example.org/ ",
    "https://app.exam\tple.org/",
    "https://app.example.org/\r\nSet-Cookie: a=b",
    "https://app.example.org/\u0000",
    "https://ap\u0440.example.org/",
    `https://app.example.org/${"x".repeat(2_000)}`
  ])
    it(`must not return to ${JSON.stringify(refused.slice(0, 80))}`, () =>
      assert.isString(redirectFault(refused, hosts)))

  it("may return nowhere by default", () =>
    assert.isString(redirectFault("https://app.example.org/", [])))

  it("puts the token behind the fragment, and never anywhere else", () => {
    for (const [redirect, location] of [
      ["https://a.example", "https://a.example/#T%3D"],
      ["https://a.example/x?y=z", "https://a.example/x?y=z#T%3D"],
      ["https://a.example/#", "https://a.example/#T%3D"],
      ["https://a.example/#token=", "https://a.example/#token=T%3D"],
      ['https://a.example/"<>#a b'.replace(" ", "%20"), "https://a.example/%22%3C%3E#a%20bT%3D"]
    ] as const)
      assert.strictEqual(withToken(redirect, "T="), location)
  })

  it("puts an error where the token would stand, in place of the name before it", () => {
    const error =
      "error=expired&error_description=This%20login%20took%20longer%20than%2015%20minutes"
    for (const [redirect, before] of [
      ["https://a.example", "https://a.example/#"],
      ["https://a.example/?token=", "https://a.example/?token=#"],
      ["https://a.example/x?y=z#", "https://a.example/x?y=z#"],
      ["https://a.example/#token=", "https://a.example/#"],
      ["https://a.example/#tab=2&provider_token=", "https://a.example/#tab=2&"],
      ["https://a.example/#/login/", "https://a.example/#/login/"],
      ["https://a.example/#/login?token=", "https://a.example/#/login?"],
      ["https://a.example/#a#token=", "https://a.example/#a#"]
    ] as const)
      assert.strictEqual(withError(redirect, "expired").split(".%20Please")[0], `${before}${error}`)
  })
})

describe("a pattern of hosts", () => {
  it("names hosts, never all of them", () => {
    for (const pattern of ["app.example.org", "*.example.org", "localhost:3000", "app-*.a.example"])
      assert.isUndefined(hostPatternFault(pattern), pattern)
    for (const pattern of ["*", "*.*", "*:3000", "https://a.example", "a.example/", "A.example"])
      assert.isString(hostPatternFault(pattern), pattern)
  })
})

describe("a mail address", () => {
  it("is one in all its spellings", () => {
    for (const [spelling, address] of [
      ["Anna@Example.ORG", "anna@example.org"],
      ["anna@MÜLLER.example", "anna@xn--mller-kva.example"],
      ["anna@xn--mller-kva.example", "anna@xn--mller-kva.example"],
      ["a@b@Example.org", "a@b@example.org"],
      ["alice@", "alice@"]
    ] as const)
      assert.strictEqual(normalAddress(spelling), address)
  })
})

describe("the broker's page for a login", () => {
  const issuer = "https://broker.example.org"
  const document = { issuer, jwks_uri: `${issuer}/keys.json` }

  it("gets the URL to return to with the host in lower case, as in the client's id", () => {
    const rootUrl = "https://Push.Example.org/v1"
    const url = new URL(brokerUrl(issuer, document, rootUrl, "anna@example.org", "nonce"))
    assert.strictEqual(
      url.searchParams.get("redirect_uri"),
      "https://push.example.org/v1/portier/verify"
    )
    assert.strictEqual(url.searchParams.get("client_id"), "https://push.example.org")
  })

  it("names the best algorithm that the broker lets clients choose, and else none", () => {
    const algorithmOf = (more: object) => {
      const page = brokerUrl(issuer, { ...document, ...more }, issuer, "a@example.org", "nonce")
      return new URL(page).searchParams.get("id_token_signing_alg")
    }
    const accepts_id_token_signing_alg_query_param = true
    for (const [named, chosen] of [
      [["RS256", "EdDSA"], "EdDSA"],
      [["RS256"], "RS256"],
      [["HS256", "none", "EdDSA"], "EdDSA"],
      [["HS256", "none"], null]
    ] as const) {
      const more = { id_token_signing_alg_values_supported: named }
      assert.strictEqual(algorithmOf({ ...more, accepts_id_token_signing_alg_query_param }), chosen)
      assert.isNull(algorithmOf(more))
    }
  })
})
