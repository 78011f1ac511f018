// Logins by mail that fail: a browser goes on at the page where it began, or sees a page of ours.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  acceptPage,
  cookieIn,
  errorOf,
  fromPage,
  type Portier,
  page,
  seconds,
  startPortier
} from "#test/identity/portier.ts"

let portier: Portier
let { begun, proof, verify } = {} as Portier
beforeAll(async () => {
  portier = await startPortier("gateway,projection")
  ;({ begun, proof, verify } = portier)
})
afterAll(() => portier[Symbol.asyncDispose]())

/** The error with which a browser comes back to its page. */
const errorAt = (response: Response) => {
  const location = response.headers.get("location") ?? expect.fail("no redirect")
  const [before, fragment] = location.split("#")
  expect(before).toBe("https://app.example.org/inbox")
  expect([response.status, response.headers.get("set-cookie")]).toEqual([302, null])
  expect(response.headers.get("referrer-policy")).toBe("no-referrer")
  const { error, ...others } = Object.fromEntries(new URLSearchParams(fragment))
  expect(others).toEqual({ error_description: expect.stringMatching(/^[\w ,.]+\.$/) })
  return error
}

describe("a browser that began a login comes back to its page with an error", () => {
  const wrong: Readonly<Record<string, readonly [object, string]>> = {
    "of another login": [{ nonce: "0".repeat(32) }, "invalid_request"],
    "that has expired": [{ exp: seconds() - 10 }, "expired"],
    "for another site": [{ aud: "https://other.example" }, "server_error"],
    "for what is no text": [{ aud: [[["x"]], 7] }, "server_error"],
    "of an address that is not verified": [{ email_verified: false }, "server_error"]
  }
  for (const [name, [claims, error]] of Object.entries(wrong))
    it(`by a proof ${name}: ${error}`, async () => {
      const { cookie, nonce } = await begun()
      const id_token = await proof(nonce, claims as Record<string, unknown>)
      expect(errorAt(await verify(cookie, { id_token }, acceptPage))).toBe(error)
      // The login itself is not over.
      const response = await verify(cookie, { id_token: await proof(nonce) }, acceptPage)
      expect(response.headers.get("location")).toMatch(/#token=[0-9a-f]{64}$/)
      const again = await verify(cookie, { id_token: await proof(nonce) }, acceptPage)
      expect(errorAt(again)).toBe("invalid_request")
    })

  it("by the broker, with a code of a list and never with its text", async () => {
    const { cookie } = await begun()
    for (const [sent, error] of [
      ["access_denied", "access_denied"],
      ["temporarily_unavailable", "temporarily_unavailable"],
      ["invalid_request", "server_error"],
      ["made_up&token=x", "server_error"],
      ["__proto__", "server_error"]
    ] as const) {
      const fields = { error: sent, error_description: "<b>anna@example.org</b>" }
      const response = await verify(cookie, fields, acceptPage)
      expect(response.headers.get("location")).not.toContain("anna")
      expect(errorAt(response)).toBe(error)
    }
    expect(errorAt(await verify(cookie, {}, "*/*"))).toBe("invalid_request")
  })

  it("while keys cannot be fetched for its proof: temporarily_unavailable", async () => {
    const { cookie, nonce } = await begun()
    const verifyWith = async (kid: string) =>
      verify(cookie, { id_token: await proof(nonce, {}, { kid }) }, acceptPage)
    await verifyWith("made-up-1")
    expect(errorAt(await verifyWith("made-up-2"))).toBe("temporarily_unavailable")
  })
})

describe("a program", () => {
  it("gets JSON, with the cookie, too", async () => {
    const { cookie } = await begun()
    expect(await errorOf(await verify(cookie, { id_token: "x" }))).toEqual([
      400,
      400,
      "invalid-login"
    ])
    expect(await errorOf(await verify("", { id_token: "x" }, "*/*"))).toEqual([
      400,
      400,
      "invalid-login"
    ])
  })
})

describe("a browser that did not begin the login sees a page", () => {
  const pageOf = async (response: Response) => {
    expect(response.headers.get("content-type")).toBe("text/html; charset=UTF-8")
    expect(response.headers.get("location")).toBeNull()
    expect(response.headers.get("cache-control")).toMatch(/no-store/)
    const policy = response.headers.get("content-security-policy")
    expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'; form-action 'none'; /)
    const text = await response.text()
    expect(text).toMatch(/^<!doctype html><html lang="en">/)
    expect(text).not.toMatch(/<script|https?:/)
    return text
  }

  it("that says what to do, whatever its cookie claims", async () => {
    const { cookie, nonce } = await begun()
    const id_token = await proof(nonce)
    const state = { nonce, redirect: "https://evil.example/", until: Date.now() + 60_000 }
    const forged = Buffer.from(JSON.stringify(state)).toString("base64url")
    for (const wrong of ["", cookie.replace(/=[^.]+/, `=${forged}`), `${cookie}x`]) {
      const response = await verify(wrong, { id_token }, acceptPage)
      expect(response.status).toBe(400)
      expect(await pageOf(response)).toContain("type the code there")
    }
  })

  it("with the sentence for the broker's error, never its text", async () => {
    const fields = { error: "access_denied", error_description: "<b>anna@example.org</b>" }
    const text = await pageOf(await verify("", fields, acceptPage))
    expect(text).toContain("The login was cancelled")
    expect(text).not.toContain("anna")
  })

  it("when a login cannot begin, with the status and Retry-After of the error", async () => {
    const beginAs = (email: string, redirect: string) =>
      fetch(`${portier.service.url}/portier/login`, {
        method: "POST",
        redirect: "manual",
        headers: { ...fromPage, accept: acceptPage },
        body: new URLSearchParams({ email, redirect })
      })
    const refused = await beginAs("anna@example.org", "https://evil.example/<b>")
    expect([refused.status, cookieIn(refused)]).toEqual([400, ""])
    expect(await pageOf(refused)).toContain("redirect: ")
    for (let i = 0; i < 40; i += 1) await beginAs("mallory@example.org", page)
    const limited = await beginAs("mallory@example.org", page)
    expect([limited.status, Number(limited.headers.get("retry-after")) > 60]).toEqual([429, true])
    expect(await pageOf(limited)).toContain("try again")
  })
})
