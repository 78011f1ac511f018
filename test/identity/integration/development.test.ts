// What `make run` leaves open for trying, and that a policy which verifies users ends it.
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { startDevelopment } from "#test/development.ts"
import { temporaryFolder } from "#test/folder.ts"
import { startPushService } from "#test/push-service.ts"
import { runCli } from "#test/run-cli.ts"
import type { Service } from "#test/service.ts"

const signing = {
  BELLCAST_AUTH_SIGNED_SECRETS: "the-secret-of-the-site-and-of-Bellcast",
  BELLCAST_AUTH_SIGNED_AUDIENCE: "bellcast"
}

const statuses = async ({ url }: Service, authorization: string) => {
  const headers = { authorization, "content-type": "application/json" }
  await using push = await startPushService()
  const post = async (path: string, data: unknown) => {
    const body = JSON.stringify({ data })
    return (await fetch(url + path, { method: "POST", headers, body })).status
  }
  return {
    publish: await post("/channels/news", { title: "Hello" }),
    loopback: await post("/subscriptions", push.subscribe().subscription),
    metrics: (await fetch(`${url}/__metrics__`)).status
  }
}

describe("make run", () => {
  it("is closed to the users of a policy that verifies them", { timeout: 90_000 }, async () => {
    const policies = { BELLCAST_AUTH_POLICIES: "signed token", ...signing }
    await using service = await startDevelopment(policies)
    const token = (await runCli(["sign-user", "visitor"], signing)).stdout.trimEnd()
    const authorization = `Bearer ${token}`
    expect(await statuses(service, authorization)).toEqual({
      publish: 403,
      loopback: 400,
      metrics: 403
    })
    expect(service.output()).toMatch(/Logins +signed, token$/m)
    expect(service.output()).toMatch(/Publishers +none by BELLCAST_CHANNEL_WRITE_PRINCIPALS; /)
    expect(service.output()).not.toMatch(/Open to everybody/)
    const listener = ["listen", "news", "--url", service.url]
    const refused = await runCli(listener, { BELLCAST_TOKEN: token })
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(/only with BELLCAST_ALLOW_LOOPBACK_ENDPOINTS=true\n/)
  })

  it("opens no data of verified users because their settings are gone", {
    timeout: 90_000
  }, async () => {
    const data = { BELLCAST_DATA_DIR: await temporaryFolder() }
    const signed = { BELLCAST_AUTH_POLICIES: "signed", ...signing }
    {
      await using first = await startDevelopment({ ...data, ...signed })
      expect(await first.stop()).toBe(0)
    }
    const refused = await startDevelopment(data).then(
      () => "started",
      (error: Error) => error.message
    )
    expect(refused).toMatch(/cannot start\. .*BELLCAST_AUTH_POLICIES: is not set.* \(\.env\)/s)
    await using again = await startDevelopment({ ...data, ...signed })
    expect(await again.stop()).toBe(0)
    await using opened = await startDevelopment({ ...data, BELLCAST_AUTH_POLICIES: "basicauth" })
    expect(opened.output()).toMatch(/Publishers +every user$/m)
  })

  it("names the file of its policies when it cannot be written", { timeout: 90_000 }, async () => {
    const data = await temporaryFolder()
    const note = join(data, "nats", "policies")
    await mkdir(note, { recursive: true })
    const refused = await startDevelopment({ BELLCAST_DATA_DIR: data }).then(
      () => "started",
      (error: Error) => error.message
    )
    expect(refused).toContain(`cannot start. ${note} (the policies of this start) `)
    expect(refused).toMatch(/could not be written: Error: EISDIR/)
  })

  it("says what is open where anybody is a user", { timeout: 90_000 }, async () => {
    await using service = await startDevelopment({})
    const authorization = `Basic ${btoa("visitor:secret")}`
    expect(await statuses(service, authorization)).toEqual({
      publish: 202,
      loopback: 201,
      metrics: 200
    })
    expect(service.output()).toMatch(/Publishers +every user$/m)
    expect(service.output()).toMatch(
      /Open to everybody +endpoints on this machine, metrics, any number of users, channels/
    )
  })
})
