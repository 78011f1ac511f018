// Users whose ids are signed by hand, or by the examples in the document.
import { spawnSync } from "node:child_process"
import { SignJWT } from "jose"
import { describe, expect, it, vi } from "vitest"
import { textOf } from "#test/documents.ts"
import { useGateway } from "#test/identity/gateway.ts"
import { userIn } from "#test/identity/requests.ts"
import { runCli } from "#test/run-cli.ts"

const siteSecret = "the-secret-of-the-site-and-of-Bellcast"
const signing = {
  BELLCAST_AUTH_SIGNED_SECRETS: `${siteSecret} another-secret-of-the-site-and-of-Bellcast`,
  BELLCAST_AUTH_SIGNED_AUDIENCE: "bellcast other"
}

const started = useGateway({ BELLCAST_AUTH_POLICIES: "signed", ...signing })

const rootOf = async (token: string) =>
  userIn(await fetch(`${started.service.url}/`, { headers: { authorization: `Bearer ${token}` } }))
const userOf = async (token: string) => (await rootOf(token))?.id
const principalsOf = async (token: string) => (await rootOf(token))?.principals

const signedBySite = (claims: Readonly<Record<string, unknown>>) =>
  new SignJWT(claims)
    .setProtectedHeader({ alg: "HS256" })
    .setAudience("bellcast")
    .setExpirationTime("1h")
    .sign(new TextEncoder().encode(siteSecret))

describe("a user of the site", () => {
  it("is signed by hand, for a time", async () => {
    const signed = await runCli(["sign-user", "Zoë 7"], signing)
    expect(signed).toMatchObject({ code: 0, stderr: "" })
    expect(await userOf(signed.stdout.trimEnd())).toBe("signed:Zoë 7")
    const brief = await runCli(["sign-user", "zoe", "--expires", "1s"], signing)
    await vi.waitFor(
      async () => expect(await userOf(brief.stdout.trimEnd())).toBeUndefined(),
      5_000
    )
  })

  it("has the groups that are given by hand, of which none may be unusable", async () => {
    const staff = ["--group", "staff", "--group", "site/editors"]
    const { stdout } = await runCli(["sign-user", "zoe", ...staff], signing)
    const principals = await principalsOf(stdout.trimEnd())
    expect(principals).toContain("group:signed:staff")
    expect(principals).toContain("group:signed:site/editors")
    const refused = await runCli(["sign-user", "zoe", "--group", "a,b"], signing)
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/a,b can be no group/) })
    const many = Array.from({ length: 101 }, (_, i) => ["--group", `g${i}`]).flat()
    const tooMany = await runCli(["sign-user", "zoe", ...many], signing)
    const said = expect.stringMatching(/--group: Expected at most 100, got 101/)
    expect(tooMany).toMatchObject({ code: 1, stdout: "", stderr: said })
  })

  it("is not signed without the settings, which are named", async () => {
    const { BELLCAST_AUTH_SIGNED_SECRETS: _, ...audience } = signing
    for (const [env, args, said] of [
      [{}, [], /BELLCAST_AUTH_SIGNED_AUDIENCE/],
      [audience, [], /BELLCAST_AUTH_SIGNED_SECRETS is not set here.*public keys/],
      [{ ...signing, BELLCAST_AUTH_SIGNED_SECRETS: "short" }, [], /_SECRETS: Expected at least 32/],
      [signing, ["--policy", "signed-shop"], /BELLCAST_AUTH_SIGNED_SHOP_AUDIENCE/],
      [signing, ["--policy", "oauth"], /--policy: Expected signed/],
      [signing, ["--expires", "25h"], /at most 24h/]
    ] as const) {
      const refused = await runCli(["sign-user", "zoe", ...args], env)
      expect(refused).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(said) })
    }
  })

  it("may have a number, which is the user of its digits", async () => {
    expect(await userOf(await signedBySite({ sub: 42 }))).toBe("signed:42")
    expect(await userOf(await signedBySite({ sub: "42" }))).toBe("signed:42")
    const headers = { authorization: `Bearer ${await signedBySite({ sub: 4.2 })}` }
    const refused = await fetch(`${started.service.url}/subscriptions`, { headers })
    expect(refused.status).toBe(401)
    expect(refused.headers.get("www-authenticate")).toMatch(
      /error_description="the claim with the user's id must be a string or a whole number"/
    )
  })

  it("is never the user of somebody's mail address, whatever name or group it has", async () => {
    const anna = await userOf(await signedBySite({ sub: "anna@example.org" }))
    const marked = anna!.slice("signed:".length)
    const digits = marked.slice(1)
    expect(await userOf(await signedBySite({ sub: marked }))).toBeUndefined()
    expect(await userOf(await signedBySite({ sub: digits }))).not.toBe(anna)
    const groups = [marked, digits, "anna@example.org"]
    expect(await principalsOf(await signedBySite({ sub: "mal", groups }))).toEqual([
      "signed:mal",
      "system.Everyone",
      "system.Authenticated",
      `group:signed:${digits}`,
      `group:signed:${marked}`
    ])
  })

  it("is told when no policy is for a token", async () => {
    const { stdout } = await runCli(["sign-user", "zoe"], {
      ...signing,
      BELLCAST_AUTH_SIGNED_AUDIENCE: "another"
    })
    const headers = { authorization: `Bearer ${stdout.trimEnd()}` }
    const refused = await fetch(`${started.service.url}/subscriptions`, { headers })
    expect(refused.headers.get("www-authenticate")).toBe(
      'Bearer realm="Realm", error="invalid_token", ' +
        'error_description="no policy takes tokens with this iss and aud"'
    )
  })

  const examples = [
    ["js", process.execPath, ["--input-type=module", "-"]],
    ["php", "php", ["--"]],
    ["python", "python3", ["-"]],
    ["ruby", "ruby", ["-"]]
  ] as const
  for (const [language, command, args] of examples) {
    const isThere = spawnSync(command, ["--version"]).status === 0
    if (!isThere) process.stderr.write(`skipped: the example in ${language} (no ${command} here)\n`)
    it.skipIf(!isThere)(`is signed by the example in ${language}`, async () => {
      const pattern = new RegExp(`\`\`\`${language}\n(.*sign.user\\.[\\s\\S]*?)\`\`\``)
      const [, input = ""] = pattern.exec(textOf("src/identity/policies/README.md")) ?? []
      const env = { ...process.env, SITE_SECRET: siteSecret }
      const { stderr, stdout } = spawnSync(command, [...args, "Zoë"], { input, env })
      expect(stderr.toString()).toBe("")
      expect(await userOf(stdout.toString().trimEnd())).toBe("signed:Zoë")
    })
  }
})
