// A policy that verifies users ends what `make run` leaves open for trying. What that is:
// test/integration/demo.test.ts.
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { expectNoDemo, startDevelopment, statusesOf } from "#test/development.ts"
import { temporaryFolder } from "#test/folder.ts"
import { runCli } from "#test/run-cli.ts"

const signing = {
  BELLCAST_AUTH_SIGNED_SECRETS: "the-secret-of-the-site-and-of-Bellcast",
  BELLCAST_AUTH_SIGNED_AUDIENCE: "bellcast"
}

describe("make run", () => {
  it("is closed to the users of a policy that verifies them", { timeout: 90_000 }, async () => {
    const policies = { BELLCAST_AUTH_POLICIES: "signed token", ...signing }
    await using service = await startDevelopment(policies)
    const token = (await runCli(["sign-user", "visitor"], signing)).stdout.trimEnd()
    const authorization = `Bearer ${token}`
    expect(await statusesOf(service, authorization)).toEqual({
      publish: 403,
      loopback: 400,
      metrics: 403
    })
    expect(service.output()).toMatch(/Logins +signed, token$/m)
    expect(service.output()).toMatch(/Publishers +none by BELLCAST_CHANNEL_WRITE_PRINCIPALS; /)
    expect(service.output()).not.toMatch(/Open to everybody/)
    await expectNoDemo(service)
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
})
