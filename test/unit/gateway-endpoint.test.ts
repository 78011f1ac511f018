// Which endpoints may be stored: none may lead the service to a machine that its operator did not
// name.
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { checkEndpoint, knownPushHosts } from "#domain/subscription/endpoint.ts"

const strict = { hosts: [], allowLoopback: false }
const open = { hosts: ["*"], allowLoopback: false }
const development = { hosts: [], allowLoopback: true }

const takes = (endpoint: string, policy: Parameters<typeof checkEndpoint>[1]) =>
  it(`takes ${endpoint}`, () => assert.isUndefined(checkEndpoint(endpoint, policy)))
const refuses = (endpoint: string, policy: Parameters<typeof checkEndpoint>[1]) =>
  it(`refuses ${endpoint}`, () => assert.isString(checkEndpoint(endpoint, policy)))

describe("without settings", () => {
  for (const endpoint of [
    "https://fcm.googleapis.com/fcm/send/abc:def",
    "https://jmt17.google.com/fcm/send/abc:def",
    "https://updates.push.services.mozilla.com/wpush/v2/abc",
    "https://web.push.apple.com/abc",
    "https://eu.push.apple.com/abc",
    "https://db5.notify.windows.com/w/?token=abc%2b"
  ]) {
    takes(endpoint, strict)
  }
  for (const endpoint of [
    "https://googleapis.com/x",
    "https://evilfcm.googleapis.com/x",
    "https://fcm.googleapis.com.evil.example/x",
    "https://evil.example/fcm.googleapis.com/",
    "https://evil.example\\@fcm.googleapis.com/",
    "https://fcm.googleapis.com@evil.example/",
    "https://notify.windows.com/x",
    "https://evilpush.apple.com/x",
    "https:/fcm.googleapis.com/x",
    "https:///fcm.googleapis.com/x",
    " https://fcm.googleapis.com/x",
    "https://fcm.goo\tgleapis.com/x",
    "https://fcm.googleapis.com/x\n",
    "//fcm.googleapis.com/x",
    "https://fcm.googleapis.com/fcm/send/abc:def?1",
    "https://updates.push.services.mozilla.com/wpush/v2/abc?x=1",
    "http://localhost:8080/x"
  ]) {
    refuses(endpoint, strict)
  }
})

describe("with any public host allowed", () => {
  takes("https://push.example.com/x", open)
  takes("https://xn--9ca.com/%C3%A9", open)
  for (const endpoint of [
    "https://127.0.0.1/x",
    "https://127.1/x",
    "https://0x7f000001/x",
    "https://0177.0.0.1/x",
    "https://2130706433/x",
    "https://１２７.0.0.1/x",
    "https://[::1]/x",
    "https://[::ffff:10.0.0.1]/x",
    "https://8.8.8.8/x",
    "https://0/x",
    "https://169.254.169.254/latest/meta-data/",
    "https://0xa9fea9fe/x",
    "https://[fd00:ec2::254]/x",
    "https://[::ffff:a9fe:a9fe]/x",
    "https://[64:ff9b::a9fe:a9fe]/x",
    "https://metadata/x",
    "https://user@push.example.com/x",
    "https://user:secret@push.example.com/x",
    "https://push.example.com:80/x",
    "http://push.example.com/x",
    "https://localhost/x",
    "https://a.localhost/x",
    "https://printer.local/x",
    "https://metadata.google.internal/x",
    "https://intranet/x",
    "https://push.example.com./x",
    "https://push.example.com:8443/x"
  ]) {
    refuses(endpoint, open)
  }
})

describe("with every pattern allowed that an operator may write", () => {
  const all = { hosts: ["*", "*.example", "push.example", "example"], allowLoopback: true }
  takes("https://push.example.com/x", all)
  for (const host of ["push.example", "a.push.example", "example"])
    it(`refuses ${host}, which is for documentation`, () =>
      assert.match(checkEndpoint(`https://${host}/x`, all) ?? "", /documentation/))
})

describe("in another spelling than its own", () => {
  const plainForm =
    "Must be written in its plain form, which begins with https://fcm.googleapis.com/"
  for (const endpoint of [
    "HTTPS://fcm.googleapis.com/x",
    "https://FCM.googleapis.com/x",
    "https://fcm.googleapis.com:443/x",
    "https://fcm.googleapis.com:/x",
    "https://fcm%2Egoogleapis.com/x",
    "https://%66cm.googleapis.com/x",
    "https://@fcm.googleapis.com/x",
    "https://:@fcm.googleapis.com/x",
    "https:fcm.googleapis.com/x",
    "https:/fcm.googleapis.com/x",
    "https:///fcm.googleapis.com/x",
    "https://fcm.googleapis.com",
    "https://fcm.googleapis.com?x"
  ])
    it(`names the plain form of ${endpoint}`, () =>
      assert.equal(checkEndpoint(endpoint, strict), plainForm))
  const ascii = "Must be a URL of printable ASCII characters, without a backslash"
  for (const endpoint of [
    "https://fcm。googleapis.com/x",
    "https://ｆｃｍ.googleapis.com/x",
    "https://fcm.google\u00adapis.com/x",
    "https://é.com/x",
    "https://fcm.googleapis.com/é",
    "https://fcm.googleapis.com/\u{1f600}",
    "https://fcm.googleapis.com/\u007f",
    "https://fcm.googleapis.com\\x",
    "https://fcm.googleapis.com/\\evil.example"
  ])
    it(`names the allowed characters for ${JSON.stringify(endpoint)}`, () =>
      assert.equal(checkEndpoint(endpoint, strict), ascii))
  for (const endpoint of [
    "HTTP://localhost:8080/x",
    "http://LOCALHOST:8080/x",
    "http://localhost:80/x",
    "http://127.1:8080/x",
    "http://localhost:8080"
  ])
    refuses(endpoint, development)
})

describe("in development", () => {
  for (const endpoint of ["http://localhost:8080/x", "https://127.0.0.1:1/x", "http://[::1]:9/x"])
    takes(endpoint, development)
  for (const endpoint of [
    "http://127.0.0.2/x",
    "http://10.0.0.1/x",
    "http://fcm.googleapis.com/x",
    "http://localhost.evil.example/x",
    "ftp://localhost/x"
  ]) {
    refuses(endpoint, development)
  }
})

describe("with hosts of its own", () => {
  const own = { hosts: ["push.example.org", "*.example.net", "É.com"], allowLoopback: false }
  for (const endpoint of [
    "https://push.example.org/x",
    "https://a.b.example.net/x",
    "https://xn--9ca.com/x"
  ])
    takes(endpoint, own)
  for (const endpoint of [
    "https://example.org/x",
    "https://example.net/x",
    "https://badexample.net/x"
  ])
    refuses(endpoint, own)
})

it("only ever takes what every reader of the URL takes to an allowed host", () => {
  const pieces = fc.constantFrom(
    "https:",
    "http:",
    "/",
    "//",
    "\\",
    "@",
    ":",
    "#",
    "?",
    "fcm.googleapis.com",
    "evil.example",
    "127.0.0.1",
    "%40",
    " ",
    ".",
    "443"
  )
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 9 }), (parts) => {
      const endpoint = parts.join("")
      if (checkEndpoint(endpoint, strict) !== undefined) return
      const { hash, host, password, protocol, username } = new URL(endpoint)
      assert.isTrue(endpoint.startsWith(`https://${host}/`))
      assert.deepEqual(
        { hash, password, protocol, username },
        { hash: "", password: "", protocol: "https:", username: "" }
      )
      assert.include(knownPushHosts as ReadonlyArray<string>, host)
    }),
    { numRuns: 20_000 }
  )
})
