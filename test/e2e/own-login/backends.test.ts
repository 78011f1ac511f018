// The blocks of src/browser/own-login.md that need no browser: the endpoint that signs in Express,
// Django, Rails and Laravel, and the requests of the site's server.
import { spawnSync } from "node:child_process"
import { mkdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { SignJWT } from "jose"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call } from "#test/client.ts"
import { makeFolder } from "#test/folder.ts"
import { blockOf, type Owner, secret, startExpress, startOwner } from "./owner.ts"

interface Response {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Name, language of the block, program, and a check whether that can run. */
const backends = [
  ["Django", "python", ["python3", "in-django.py"], ["-c", "import django, jwt"]],
  ["Rails", "ruby", ["ruby", "in-rails.rb"], ["-e", "require 'action_controller'; require 'jwt'"]],
  ["Laravel", "php", ["php", "in-laravel.php"], ["-r", "require 'Illuminate/autoload.php';"]]
] as const

const canRun = (command: string, args: ReadonlyArray<string>, what: string): boolean => {
  const isThere = spawnSync(command, args).status === 0
  if (!isThere) process.stderr.write(`skipped: the block of ${what} (it is not installed here)\n`)
  return isThere
}

describe("a site with its own login", () => {
  const opened = new AsyncDisposableStack()
  let owner: Owner
  /** The token of the site's server. */
  let token: string
  beforeAll(async () => {
    owner = opened.use(await startOwner())
    opened.use(await startExpress(owner))
    token = await owner.run(blockOf("6. Publish", "sh", "token create"))
  })
  afterAll(() => opened.disposeAsync())

  const as = (bearer: string, method: string, path: string, base = owner.service.url) =>
    call(base, method, path, undefined, undefined, { authorization: `Bearer ${bearer}` })

  /** The duties of every endpoint that signs. */
  const expectSigned = async (user: Response, visitor: Response) => {
    expect(user.status).toBe(200)
    expect(user.headers["content-type"]).toMatch(/^text\/plain/)
    expect((await as(user.body, "GET", "/")).body.user.id).toBe("signed:42")
    expect(visitor.status).toBe(401)
    for (const { headers } of [user, visitor]) {
      expect(headers["cache-control"]).toMatch(/no-store/)
      expect(headers).not.toHaveProperty("access-control-allow-origin")
    }
  }

  it.each([
    ["Express", "/push-token"],
    ["a route handler of Next.js", "/next/push-token"]
  ])("signs its users in %s, nobody else", async (_, path) => {
    const ask = async (cookie: string): Promise<Response> => {
      const sent = call(owner.site, "GET", path, "", undefined, { cookie })
      const { body, headers, status } = await sent
      return { status, headers: Object.fromEntries(headers), body }
    }
    await expectSigned(await ask("user=42"), await ask(""))
  })

  for (const [name, language, [command, program], check] of backends)
    it.skipIf(!canRun(command, check, name))(
      `signs its users in ${name}, nobody else`,
      async () => {
        const path = fileURLToPath(new URL(program, import.meta.url))
        const input = blockOf("3. Sign your users", language)
        const env = { ...process.env, PUSH_SECRET: secret }
        const { stderr, stdout } = spawnSync(command, [path], { input, env, encoding: "utf8" })
        expect(stderr).toBe("")
        const [user, visitor] = JSON.parse(stdout) as readonly [Response, Response]
        await expectSigned(user, visitor)
      }
    )

  it("sees by hand that the service believes its secret", async () => {
    const printed = await owner.run(blockOf("1. Start the service", "sh", "sign-user"))
    expect(JSON.parse(printed).user.id).toBe("signed:42")
  })

  it.skipIf(!canRun("npx", ["--version"], "npx"))(
    "runs the verbs of a checkout by the alias, with the settings of its file",
    async () => {
      const start = "1. Start the service"
      await using checkout = await owner.checkOut()
      const blocks = [blockOf(start, "sh", "npx"), blockOf(start, "sh", "sign-user")]
      const script = `unset ${Object.keys(owner.settings).join(" ")}\n${blocks.join("")}`
      expect(JSON.parse(await owner.run(script, "", checkout.path)).user.id).toBe("signed:42")
    }
  )

  it("copies the same files by the verb and by curl", async () => {
    const scripts = async (text: string) => {
      await using folder = await makeFolder()
      const cwd = join(folder.path, "bellcast")
      await mkdir(cwd)
      await owner.run(blockOf("4. Serve four files", "sh", text), "", cwd)
      const site = join(folder.path, "site/public/bellcast")
      return Promise.all(
        ["client.js", "words.js", "worker.js"].map((name) => readFile(join(site, name), "utf8"))
      )
    }
    const [byVerb, byCurl] = [await scripts("bellcast client"), await scripts("curl")]
    expect(byCurl).toEqual(byVerb)
  })

  it("closes channels but for a group and members, and forgets deleted accounts", async () => {
    const sign = (sub: string, groups: ReadonlyArray<string> = []) =>
      new SignJWT({ sub, groups, aud: "bellcast" })
        .setProtectedHeader({ alg: "HS256" })
        .setExpirationTime("10m")
        .sign(new TextEncoder().encode(secret))
    const channels = async (user: string) =>
      (await as(user, "GET", "/registrations")).body.data.map(({ id }: { id: string }) => id)
    const [user, clerk] = [await sign("42"), await sign("7", ["staff"])]
    for (const channel of ["staff", "vip"])
      expect((await as(user, "PUT", `/channels/${channel}/registration`)).status).toBe(403)
    expect((await as(clerk, "PUT", "/channels/staff/registration")).status).toBe(202)
    await owner.run(blockOf("Channels", "sh", "PUT"), token)
    expect(await channels(user)).toEqual(["vip"])
    await owner.run(blockOf("Channels", "sh", "DELETE"), token)
    expect(await channels(user)).toEqual([])
    expect(await channels(clerk)).toEqual(["staff"])
    expect((await as(clerk, "DELETE", "/")).status).toBe(202)
    expect(await channels(clerk)).toEqual([])
  })

  it("lists what it published lately, and stops what should not go out", async () => {
    const at = new Date(Date.now() + 3_600_000).toISOString()
    const headers = { authorization: `Bearer ${token}` }
    const { service } = owner
    const sent = await call(service.url, "POST", "/channels/news", undefined, { at }, headers)
    const { id } = sent.body
    const listed = JSON.parse(await owner.run(blockOf("6. Publish", "sh", "_limit"), token))
    expect(listed.data[0]).toMatchObject({ id, state: "scheduled" })
    const stop = blockOf("6. Publish", "sh", "PATCH").replace("/5", `/${id}`)
    expect(JSON.parse(await owner.run(stop, token)).data.state).toBe("cancelled")
  })

  it("lets its users publish nothing", async () => {
    const user = await owner.run("bellcast sign-user 42")
    const { status } = await call(
      owner.service.url,
      "POST",
      "/channels/news",
      undefined,
      { data: {} },
      { authorization: `Bearer ${user}` }
    )
    expect(status).toBe(403)
  })
})
