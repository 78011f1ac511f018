// The proxy of an environment.
import { assert, describe, it } from "vitest"
import { proxyFault, proxyOf } from "#basics/outgoing.ts"

describe("HTTPS_PROXY", () => {
  it("names host, port and login, in capitals or not, with or without a scheme", () => {
    const named = (env: Record<string, string>) => {
      const { authorization, hostname, port } = proxyOf(env) ?? {}
      const login = authorization && Buffer.from(authorization.slice(6), "base64").toString()
      return [hostname, port, login]
    }
    assert.deepEqual(named({ HTTPS_PROXY: "http://proxy.corp:3128" }), [
      "proxy.corp",
      3128,
      undefined
    ])
    assert.deepEqual(named({ https_proxy: "proxy.corp" }), ["proxy.corp", 80, undefined])
    assert.deepEqual(named({ HTTPS_PROXY: "http://a:p%40ss@[::1]:8080/" }), ["::1", 8080, "a:p@ss"])
  })

  it("is none where it is empty, and a fault where no tunnel can be asked for", () => {
    for (const env of [{}, { HTTPS_PROXY: "" }, { HTTPS_PROXY: " " }]) {
      assert.isUndefined(proxyOf(env))
      assert.isUndefined(proxyFault(env))
    }
    for (const text of [
      "socks5://a:1",
      "https://a:1",
      "http://",
      "http://a/path",
      "http://a:b:c"
    ]) {
      assert.isUndefined(proxyOf({ HTTPS_PROXY: text }), text)
      assert.match(proxyFault({ HTTPS_PROXY: text }) ?? "", /^HTTPS_PROXY: Expected http:/, text)
    }
  })
})

describe("NO_PROXY", () => {
  const excluded = (list: string, host: string, port = 443) =>
    proxyOf({ HTTPS_PROXY: "proxy", NO_PROXY: list })?.excludes(host, port)

  it("excludes hosts and all below them, and nothing that only ends like them", () => {
    for (const list of ["corp.example", ".corp.example", "*.corp.example", "a, CORP.example b"])
      for (const host of ["corp.example", "login.corp.example"])
        assert.isTrue(excluded(list, host), `${list} ${host}`)
    assert.isFalse(excluded("corp.example", "evilcorp.example"))
    assert.isFalse(excluded("", "corp.example"))
  })

  it("excludes a port alone, an address, or everything", () => {
    assert.isTrue(excluded("a.example:8443", "a.example", 8443))
    assert.isFalse(excluded("a.example:8443", "a.example"))
    assert.isTrue(excluded("127.0.0.1", "127.0.0.1"))
    assert.isTrue(excluded("*", "a.example"))
  })
})
