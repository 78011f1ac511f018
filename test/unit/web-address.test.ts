// Settings that name an origin, a host, a URL or an address: each is compared with what others
// write, so one in another form is normalised, or refused at the start.
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { settings } from "#config"
import { allowedOrigin } from "#gateway/http/response-headers.ts"
import { gatewaySettings } from "#gateway/settings.ts"
import { openidSettings } from "#identity/policies/openid.ts"
import { readEvery, type Table } from "#settings/every-setting.ts"
import { layerOf, readSource } from "#settings/source.ts"

/** The values that a table makes of an environment, or what is wrong with it. */
const read = async (table: Table, name: string, value: string) => {
  const source = readSource({ BELLCAST_CONFIG: "/dev/null", [name]: value })
  const { faults, values } = await Effect.runPromise(
    readEvery(table).pipe(Effect.provide(layerOf(source)))
  )
  return { fault: faults.find((each) => each.startsWith(name)), values }
}

describe("BELLCAST_CORS_ORIGINS", () => {
  const origins = async (text: string) => {
    const { fault, values } = await read(gatewaySettings, "BELLCAST_CORS_ORIGINS", text)
    return fault ?? (values["corsOrigins"] as ReadonlyArray<string>)
  }

  it.each([
    ["https://www.example.org/", "https://www.example.org"],
    ["HTTPS://WWW.Example.ORG", "https://www.example.org"],
    ["https://www.example.org:443", "https://www.example.org"],
    ["http://www.example.org:80/", "http://www.example.org"],
    ["http://www.example.org:443", "http://www.example.org:443"],
    ["https://www.example.org:8443", "https://www.example.org:8443"],
    ["https://b\u00fccher.example", "https://xn--bcher-kva.example"],
    ["http://[::1]:3000/", "http://[::1]:3000"],
    ["http://[0:0:0:0:0:0:0:1]:3000", "http://[::1]:3000"],
    ["http://127.1", "http://127.0.0.1"],
    ["http://localhost:08080", "http://localhost:8080"],
    ["https://www.example.org:0443", "https://www.example.org"]
  ])("takes %s for what browsers send: %s", async (text, origin) => {
    const list = await origins(text)
    expect(list).toEqual([origin])
    expect(allowedOrigin(origin, list as ReadonlyArray<string>)).toBe(origin)
  })

  it.each([
    ["*.example.org/", "*.example.org", "https://www.example.org"],
    ["*://WWW.example.org/", "*://www.example.org", "https://www.example.org"],
    ["*://127.1:08080", "*://127.0.0.1:8080", "http://127.0.0.1:8080"],
    ["https://*.example.org:443/", "https://*.example.org", "https://www.example.org"],
    ["https://*.example.org:08443", "https://*.example.org:8443", "https://a.example.org:8443"],
    [
      "https://*.b\u00fccher.example",
      "https://*.xn--bcher-kva.example",
      "https://a.xn--bcher-kva.example"
    ]
  ])("takes the pattern %s for %s, which %s matches", async (text, pattern, origin) => {
    const list = await origins(text)
    expect(list).toEqual([pattern])
    expect(allowedOrigin(origin, list as ReadonlyArray<string>)).toBe(origin)
  })

  it.each([
    "*",
    "*:8443",
    "http?://localhost:*",
    "?ttps://*",
    "*://[::1]:3000",
    "https://*.ok.example",
    "http://local?host",
    "http://localhost:*",
    "*.ok.example",
    "capacitor://localhost",
    "chrome-extension://abcdefghijklmnop",
    "null"
  ])("keeps the pattern %s", async (text) => expect(await origins(text)).toEqual([text]))

  it.each([
    "www.example.org",
    "localhost:3000",
    "*.example.org:443",
    "*://www.example.org:80",
    "*://www.example.org/path",
    "*.example.org:99999",
    "https://*.example.org:99999",
    "*.example.org/*",
    "*@example.org",
    "https://1.2.3.999",
    "https://b\u00fcch*.example",
    "https://",
    "https://www.example.org/app",
    "https://www.example.org?x=1",
    "https://user@www.example.org",
    "https://www.example.org:99999",
    "https:www.example.org",
    "https://www.example.org https//b.example",
    " , "
  ])("refuses %j, which no page can match", async (text) =>
    expect(await origins(text)).toMatch(/^BELLCAST_CORS_ORIGINS: .*Expected /)
  )
})

const table: Table = { ...settings, ...gatewaySettings, ...openidSettings("BELLCAST_AUTH_OPENID") }

describe("a setting that names a host, a URL or an address", () => {
  it.each([
    ["BELLCAST_HOST", "host", "[::1]", "::1"],
    ["BELLCAST_HOST", "host", "0.0.0.0", "0.0.0.0"],
    ["BELLCAST_HOST", "host", "localhost", "localhost"],
    ["BELLCAST_EOS_URL", "eosUrl", "https://example.org/End", "https://example.org/End"],
    ["BELLCAST_PROJECT_DOCS", "projectDocs", "http://docs.corp/", "http://docs.corp/"]
  ])("%s (%s) takes %s as %s", async (name, key, text, value) => {
    expect((await read(table, name, text)).values[key]).toBe(value)
  })

  it.each([
    ["Push.Example.ORG", "push.example.org"],
    ["push.example.org:8443", "push.example.org:8443"],
    ["push.example.org:80", "push.example.org:80"],
    ["[::1]:9999", "[::1]:9999"]
  ])("BELLCAST_HTTP_HOST takes %s as %s", async (text, value) => {
    const { values } = await read(table, "BELLCAST_HTTP_HOST", text)
    expect(values["httpHost"]).toMatchObject({ value })
  })

  it.each([
    ["BELLCAST_HOST", ["http://0.0.0.0", "0.0.0.0:9999", "*", "a b", "[::1]:9999"]],
    ["BELLCAST_HTTP_HOST", ["https://a.example", "a.example/v1", "a:99999", "1.2.3.256", "u@a"]],
    ["BELLCAST_METRICS_ADDRESS", ["http://127.0.0.1:9998", "9998", "127.0.0.1", ":99999"]],
    ["BELLCAST_TRUSTED_PROXIES", ["proxy.corp", "10.0.0.0/33", "::ffff:10.0.0.1", "fe80::1%eth0"]],
    ["BELLCAST_PUSH_HOSTS", ["https://a.example", "a.example:443", "a.example.", "10.0.0.1", "*."]],
    ["BELLCAST_NATS_URL", ["http://a:4222", "nats://a/b"]],
    ["BELLCAST_EOS_URL", ["example.org", "ftp://example.org", "https://a b"]],
    ["BELLCAST_PROJECT_DOCS", ["/docs", "javascript:alert(1)"]],
    [
      "BELLCAST_AUTH_OPENID_ISSUER",
      ["login.example.org", "http://login.example.org", "https://a "]
    ],
    [
      "BELLCAST_AUTH_OPENID_CALLBACK_HOSTS",
      ["https://a.example", "A.example", "a.example:443", "a.example/"]
    ]
  ])("%s refuses what can never match", async (name, texts) => {
    for (const text of texts)
      expect((await read(table, name, text)).fault, text).toMatch(/Expected /)
  })
})
