// Settings come from the environment, then from a file; one message names all wrong ones.
import { once } from "node:events"
import { writeFile } from "node:fs/promises"
import { createServer } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call } from "#test/client.ts"
import { temporaryFolder } from "#test/folder.ts"
import { startNats, type TestNats } from "#test/nats.ts"
import { startPushService } from "#test/push-service.ts"
import { freePort, secretEnvironment, startService } from "#test/service.ts"
import { spawnCli } from "#test/spawn-cli.ts"

/** A working directory with these files. */
const folderWith = async (files: Readonly<Record<string, string>>): Promise<string> => {
  const folder = await temporaryFolder()
  await Promise.all(
    Object.entries(files).map(([name, text]) => writeFile(join(folder, name), text))
  )
  return folder
}

/** All that a start which fails prints. */
const failing = async (
  env: Readonly<Record<string, string>>,
  file = "",
  args: ReadonlyArray<string> = []
): Promise<string> => {
  const cwd = await folderWith({ "bellcast.ini": file })
  const error = await startService({ env, cwd, args }).then(
    async (service) => {
      await service.kill()
      throw new Error(`it started: ${service.output()}`)
    },
    (failure: Error) => failure
  )
  return error.message
}

const messageOf = (output: string): string => {
  const fatal = output.split("\n").filter((line) => line.includes('"level":60'))
  expect(fatal).toHaveLength(1)
  return (JSON.parse(fatal[0]!) as { msg: string }).msg
}

describe("a start with wrong settings", () => {
  it("names all of them in one message, whosever they are, and shows no stack", async () => {
    const output = await failing({
      BELLCAST_PORT: "tcp://10.0.0.1:9999",
      BELLCAST_REPLICAS: "9",
      BELLCAST_ROLES: "gateway,postman",
      BELLCAST_BACKOFF: "soon",
      BELLCAST_EOS: "2026-13-40"
    })
    expect(output).toMatch(/^ended with 1 /)
    expect(output).not.toMatch(/\n? {4}at |"stack"/)
    expect(messageOf(output).split("\n").slice(1).sort()).toEqual([
      'BELLCAST_BACKOFF: Expected a whole number from 0 to 86400, not "soon"',
      "BELLCAST_EOS: Expected an ISO 8601 date",
      'BELLCAST_PORT: Expected a whole number from 1 to 65535, not "tcp://10.0.0.1:9999"',
      'BELLCAST_REPLICAS: Expected a whole number from 1 to 5, not "9"',
      'BELLCAST_ROLES: Expected "gateway" | "projection" | "fanout" | "delivery" | "tally" (item 2)'
    ])
  })

  it("says in words that its address is taken", async () => {
    const port = await freePort()
    const other = createServer().listen(port, "127.0.0.1")
    await once(other, "listening")
    const output = await failing({ BELLCAST_PORT: String(port), BELLCAST_ROLES: "gateway, tally" })
    other.close()
    expect(messageOf(output)).toBe(
      `cannot start. HTTP cannot be served: listen EADDRINUSE: address already in use 127.0.0.1:${port} (BELLCAST_HOST, BELLCAST_PORT)`
    )
    expect(output).not.toMatch(/"stack"/)
  })

  it("says in words that no NATS is there, or no credentials file", async () => {
    const creds = {
      ...secretEnvironment,
      BELLCAST_NATS_URL: "nats://127.0.0.1:1",
      BELLCAST_NATS_CREDS: "/none.creds"
    }
    expect(messageOf(await failing(creds))).toMatch(
      /the credentials file \/none\.creds cannot be read: ENOENT/
    )
    const output = await failing({
      ...secretEnvironment,
      BELLCAST_NATS_URL: `nats://user:hush@127.0.0.1:${await freePort()}`
    })
    expect(messageOf(output)).toBe(
      "cannot start. NATS cannot be used (connect): connection refused (BELLCAST_NATS_URL)"
    )
    expect(output).not.toMatch(/hush|"stack"/)
  })

  it("names numbers out of their bounds and what could not stand in a URL", async () => {
    const out = {
      BELLCAST_BACKOFF_PERCENTAGE: "101",
      BELLCAST_CORS_MAX_AGE_SECONDS: "-2",
      BELLCAST_HTTP_SCHEME: "gopher",
      BELLCAST_HTTP_HOST: "a b",
      // Without tls:// in BELLCAST_NATS_URL it has no use.
      BELLCAST_NATS_TLS_CA: "/ca.pem"
    }
    const message = messageOf(await failing(out))
    for (const name of Object.keys(out))
      expect(message).toMatch(new RegExp(`^${name}: Expected `, "m"))
  })

  it("names values that never match, and shows no part of a broken password", async () => {
    const output = await failing({
      BELLCAST_NATS_URL: "nats://bell:p@hush/w%rd@127.0.0.1:4222",
      BELLCAST_PUSH_HOSTS: "push.example.org https://push.example.org/",
      BELLCAST_CHANNEL_WRITE_PRINCIPALS: "system.Authenticated,alice",
      BELLCAST_HTTP_API_VERSION: "v1"
    })
    expect(output).not.toMatch(/hush|w%rd/)
    const [, ...lines] = messageOf(output).split("\n")
    expect(lines).toEqual([
      expect.stringMatching(/^BELLCAST_NATS_URL: Expected host:port or user:password@host:port, /),
      expect.stringMatching(
        /^BELLCAST_CHANNEL_WRITE_PRINCIPALS: "alice": a principal is <policy>:<id> /
      ),
      expect.stringMatching(
        /^BELLCAST_PUSH_HOSTS: "https:\/\/push\.example\.org.*": Expected a host, /
      ),
      "BELLCAST_HTTP_API_VERSION: Expected a version such as 1.0"
    ])
  })

  it("takes no argument for something that it is not", async () => {
    const [, line] = messageOf(await failing({}, "", ["--development", "--help"])).split("\n")
    expect(line).toMatch(/^"--help": The only argument is --development; /)
  })

  it("names what is wrong with the secrets beside an existing NATS, too", async () => {
    const env = {
      ...secretEnvironment,
      BELLCAST_NATS_URL: "nats://127.0.0.1:1",
      BELLCAST_VAPID_SUBJECT: "me",
      BELLCAST_BACKOFF: "soon"
    }
    expect(messageOf(await failing(env))).toMatch(/BELLCAST_BACKOFF: .*\nBELLCAST_VAPID_SUBJECT /)
  })

  it("says of a fault in the file where it stands, and quotes no line of it", async () => {
    const file = `[main]
; a comment
bellcast.vapid_private_key hush
bellcast.backoff = soon
bellcast.prot = 1
bellcast.replicas = 1
bellcast.replicas = 3
bellcast.config = other.ini
`
    const output = await failing({}, file)
    expect(output).not.toMatch(/hush/)
    expect(messageOf(output).split("\n").slice(1)).toEqual([
      "bellcast.ini, line 1: Expected bellcast.<name> = <value>",
      "bellcast.ini, line 3: Expected bellcast.<name> = <value>",
      "bellcast.ini, line 7: bellcast.replicas stands in this file twice: bellcast.replicas (bellcast.ini, line 6)",
      'bellcast.backoff (bellcast.ini, line 4): Expected a whole number from 0 to 86400, not "soon"',
      "bellcast.prot (bellcast.ini, line 5): No such setting, perhaps bellcast.port is meant",
      "bellcast.config (bellcast.ini, line 8): No such setting"
    ])
  })

  it("says that the file it was told to read is not there", async () => {
    expect(messageOf(await failing({ BELLCAST_CONFIG: "none.ini" }))).toMatch(
      /\nnone\.ini: Cannot be read \(ENOENT\)$/
    )
  })
})

describe("a file of settings", () => {
  let nats: TestNats
  beforeAll(async () => {
    nats = await startNats()
  })
  afterAll(() => nats[Symbol.asyncDispose]())

  it("applies where the environment sets nothing, also to the command line", async () => {
    const natsPort = new URL(nats.url).port
    const cwd = await folderWith({
      "bellcast.ini": [
        "# ours",
        `bellcast.nats_url = ${nats.url}`,
        "bellcast.project_name=Rundfunk = Radio  ",
        "  bellcast.version_json_path = deployed.json",
        "bellcast.backoff = 7",
        "bellcast.backoff_percentage ="
      ].join("\r\n"),
      "deployed.json": '{"name":"bellcast","version":"1.2.3","commit":"abc","source":"here"}'
    })
    const env = {
      ...secretEnvironment,
      BELLCAST_BACKOFF: "9",
      BELLCAST_PAGINATE_BY: "",
      BELLCAST_PUHS_HOSTS: "x.example"
    }
    await using service = await startService({ roles: "gateway", env, cwd, port: await freePort() })
    const root = await fetch(`${service.url}/`)
    expect(((await root.json()) as { project_name: string }).project_name).toBe("Rundfunk = Radio")
    expect(root.headers.get("backoff")).toBe("9")
    const version = (await (await fetch(`${service.url}/__version__`)).json()) as {
      version: string
    }
    expect(version.version).toBe("1.2.3")
    // The environment is shared with others: a stranger there is worth no more than a warning.
    expect(service.output()).toMatch(
      /BELLCAST_PUHS_HOSTS: no such setting, perhaps BELLCAST_PUSH_HOSTS is meant/
    )
    expect(service.output()).not.toMatch(/PAGINATE_BY|BELLCAST_TEST/)

    await using cli = spawnCli(["dead"], {}, cwd)
    await cli.printed(/no dead letters/)
    expect(await cli.exit()).toBe(0)
    expect(natsPort).not.toBe("4222")
  })

  it("counts where `make run` would have what is handy on one's own machine", async () => {
    const cwd = await folderWith({
      "bellcast.ini": `bellcast.channel_write_principals = basicauth:${"0".repeat(64)}\nbellcast.allow_loopback_endpoints =\n`
    })
    const empty = { BELLCAST_CHANNEL_WRITE_PRINCIPALS: "", BELLCAST_ALLOW_LOOPBACK_ENDPOINTS: "" }
    const env = { BELLCAST_NATS_URL: nats.url, ...secretEnvironment, ...empty }
    await using push = await startPushService()
    const loopback = push.subscribe().subscription
    await using service = await startService({
      roles: "gateway,projection",
      env,
      cwd,
      args: ["--development"]
    })
    expect(
      (await call(service.url, "POST", "/channels/news", "stranger", { data: {} })).status
    ).toBe(403)
    // An empty value is none, in the file as in the environment.
    expect(
      (await call(service.url, "POST", "/subscriptions", "user", { data: loopback })).status
    ).toBe(201)
    expect(service.output()).not.toMatch(/"stopping"/)
    expect(await service.stop()).toBe(0)
    expect(service.output()).toMatch(/"msg":"stopping"/)
  })

  it("stops a verb when it cannot be read", async () => {
    await using cli = spawnCli(
      ["dead"],
      { BELLCAST_NATS_URL: nats.url },
      await folderWith({ "bellcast.ini": "nats = x" })
    )
    await cli.printed(/bellcast.ini, line 1: Expected bellcast.<name> = <value>/)
    expect(await cli.exit()).toBe(1)
  })

  it("stops a verb that needs a setting which is wrong", async () => {
    const env = { BELLCAST_NATS_URL: nats.url, BELLCAST_SUBSCRIPTIONS_PER_USER_MAX: "51" }
    await using cli = spawnCli(["restore", "--from", "2026-11-20T09:00:00Z"], env)
    await cli.printed(
      /BELLCAST_SUBSCRIPTIONS_PER_USER_MAX: Expected a whole number from 1 to 50, not "51"/
    )
    expect(await cli.exit()).toBe(1)
  })
})
