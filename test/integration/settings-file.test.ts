// A file of settings: it applies where the environment sets nothing, to the service and the verbs.
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call } from "#test/client.ts"
import { folderWith } from "#test/folder.ts"
import { startNats, type TestNats } from "#test/nats.ts"
import { startPushService } from "#test/push-service.ts"
import { runCli } from "#test/run-cli.ts"
import { secretEnvironment, startService } from "#test/service.ts"
import { spawnCli } from "#test/spawn-cli.ts"

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
        "  bellcast.eos_message = move on",
        "bellcast.eos = 2999-01-01",
        "bellcast.backoff = 7",
        "bellcast.eos_url ="
      ].join("\r\n")
    })
    const env = {
      ...secretEnvironment,
      BELLCAST_BACKOFF: "9",
      BELLCAST_PAGINATE_BY: "",
      BELLCAST_PUHS_HOSTS: "x.example"
    }
    await using service = await startService({ roles: "gateway", env, cwd })
    const root = await fetch(`${service.url}/`)
    expect(((await root.json()) as { project_name: string }).project_name).toBe("Rundfunk = Radio")
    expect(root.headers.get("backoff")).toBe("9")
    const alert = { code: "soft-eol", message: "move on", url: `${service.url}/__api__` }
    expect(JSON.parse(root.headers.get("alert") ?? "")).toEqual(alert)
    // The environment is shared with others: a stranger there is worth no more than a warning.
    expect(service.output()).toMatch(
      /BELLCAST_PUHS_HOSTS: no such setting, perhaps BELLCAST_PUSH_HOSTS is meant/
    )
    expect(service.output()).not.toMatch(/PAGINATE_BY|BELLCAST_TEST/)

    await using cli = await spawnCli(["dead"], {}, cwd)
    await cli.printed(/no dead letters/)
    expect(await cli.exit()).toBe(0)
    expect(natsPort).not.toBe("4222")
  })

  it("counts where `make run` would have what is handy on one's own machine", async () => {
    const cwd = await folderWith({
      "bellcast.ini":
        `bellcast.channel_write_principals = basicauth:${"0".repeat(64)}\n` +
        "bellcast.allow_loopback_endpoints =\n"
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
    const folder = await folderWith({ "bellcast.ini": "nats = x" })
    const env = { BELLCAST_NATS_URL: nats.url, BELLCAST_CONFIG: join(folder, "bellcast.ini") }
    const { code, stderr } = await runCli(["dead"], env)
    expect(stderr).toMatch(/bellcast.ini, line 1: Expected bellcast.<name> = <value>/)
    expect(code).toBe(1)
  })

  it("stops a verb that needs a setting which is wrong", async () => {
    const env = { BELLCAST_NATS_URL: nats.url, BELLCAST_SUBSCRIPTIONS_PER_USER_MAX: "51" }
    const { code, stderr } = await runCli(["restore", "--from", "2026-11-20T09:00:00Z"], env)
    expect(stderr).toMatch(
      /BELLCAST_SUBSCRIPTIONS_PER_USER_MAX: Expected a whole number from 1 to 50, not "51"/
    )
    expect(code).toBe(1)
  })
})
