// Conditional requests through a proxy that compresses, which makes every ETag weak.
import { assert, describe, it } from "vitest"
import { call, until } from "../support/client.ts"
import { isNginxMissing, startNginx } from "../support/nginx.ts"
import { useService } from "../support/use-service.ts"
import { UserAgent } from "../support/user-agent.ts"

if (isNginxMissing) process.stderr.write("skipped: nginx with gzip (it is not installed here)\n")

describe.skipIf(isNginxMissing)("behind nginx with gzip", () => {
  const shared = useService()

  it("a list that did not change is not sent again, and a changed one is not removed", async () => {
    const { port, url } = shared.service
    const gzip = "gzip on; gzip_types application/json; gzip_proxied any; gzip_min_length 1;"
    await using nginx = await startNginx(
      `${gzip} location / { proxy_pass http://127.0.0.1:${port}; }`
    )
    const data = new UserAgent("https://updates.push.services.mozilla.com/wpush/v2/a", {})
    const stored = await call(url, "POST", "/subscriptions", "ann", { data: data.subscription })
    const path = "/subscriptions"
    const send = (method: string, headers: Readonly<Record<string, string>>) =>
      call(`${nginx.url}/v1`, method, path, "ann", undefined, headers)
    // nginx may not listen yet.
    const list = (await until(
      () => send("GET", { "accept-encoding": "gzip" }).catch(() => undefined),
      (answer) => answer !== undefined
    ))!
    const etag = list.headers.get("etag")!
    assert.match(etag, /^W\/"\d+"$/)
    assert.equal((await send("GET", { "if-none-match": etag })).status, 304)
    const changes = await send("GET", { "if-none-match": '"1", "2"' })
    assert.equal(changes.status, 200)
    const refused = await send("DELETE", { "if-match": etag })
    assert.deepInclude(refused.body, { code: 412, error_code: "modified-meanwhile" })
    assert.match(refused.body.message, /send the ETag without W\//)
    await call(url, "DELETE", `/subscriptions/${stored.body.data.id}`, "ann")
    // Of a list, whose timestamp is that of no object in it, the ETag alone has it.
    const emptied = await send("GET", { "accept-encoding": "gzip" })
    const strong = (weak: string) => weak.replace(/^W\//, "")
    assert.equal((await send("DELETE", { "if-match": strong(etag) })).status, 412)
    const now = strong(emptied.headers.get("etag")!)
    assert.equal((await send("DELETE", { "if-match": now })).status, 200)
  })
})
