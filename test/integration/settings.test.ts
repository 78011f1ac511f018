// A start with wrong settings: one message names all of them. Which settings are wrong, and what is
// said of each: test/unit/check-settings.test.ts.
import { once } from "node:events"
import { createServer } from "node:net"
import { describe, expect, it } from "vitest"
import { folderWith } from "#test/folder.ts"
import { claimPort } from "#test/ports.ts"
import { type ServiceOptions, secretEnvironment, sources, startService } from "#test/service.ts"

/** All that a start which fails prints. */
const failing = async (
  env: Readonly<Record<string, string>>,
  file = "",
  options: ServiceOptions = {}
): Promise<string> => {
  const cwd = await folderWith({ "bellcast.ini": file })
  const error = await startService({ env, cwd, ...options }).then(
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
      'BELLCAST_PORT: Expected a whole number from 0 to 65535, not "tcp://10.0.0.1:9999"',
      'BELLCAST_REPLICAS: Expected a whole number from 1 to 5, not "9"',
      'BELLCAST_ROLES: Expected "gateway" | "projection" | "fanout" | "delivery" | "tally" (item 2)'
    ])
  })

  it("says in words that its address is taken", async () => {
    const port = await claimPort()
    const other = createServer().listen(port, "127.0.0.1")
    await once(other, "listening")
    const output = await failing({ BELLCAST_PORT: String(port), BELLCAST_ROLES: "gateway, tally" })
    other.close()
    expect(messageOf(output)).toBe(
      "cannot start. HTTP cannot be served: listen EADDRINUSE: address already in use " +
        `127.0.0.1:${port} (BELLCAST_HOST, BELLCAST_PORT)`
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
      BELLCAST_NATS_URL: `nats://user:hush@127.0.0.1:${await claimPort()}`,
      BELLCAST_NATS_WAIT_SECONDS: "1"
    })
    expect(messageOf(output)).toBe(
      "cannot start. NATS cannot be used (connect): connection refused (BELLCAST_NATS_URL)"
    )
    expect(output).not.toMatch(/hush|"stack"/)
  })

  it("names a wrong argument, and wrong lines of the file without what they say", async () => {
    const file = `[main]
; a comment
bellcast.vapid_private_key hush
bellcast.backoff = soon
bellcast.prot = 1
bellcast.replicas = 1
bellcast.replicas = 3
bellcast.config = other.ini
`
    const output = await failing({}, file, { args: ["--development", "--help"] })
    expect(output).not.toMatch(/hush/)
    expect(messageOf(output).split("\n").slice(1)).toEqual([
      expect.stringMatching(/^"--help": The only argument is --development; /),
      "bellcast.ini, line 1: Expected bellcast.<name> = <value>",
      "bellcast.ini, line 3: Expected bellcast.<name> = <value>",
      "bellcast.ini, line 7: bellcast.replicas stands in this file twice: " +
        "bellcast.replicas (bellcast.ini, line 6)",
      "bellcast.backoff (bellcast.ini, line 4): " +
        'Expected a whole number from 0 to 86400, not "soon"',
      "bellcast.prot (bellcast.ini, line 5): No such setting, perhaps bellcast.port is meant",
      "bellcast.config (bellcast.ini, line 8): No such setting"
    ])
  })
})

it("a start loads no HTTP client of Node.js, which an import of node:http brings", async () => {
  const lister = 'process.once("exit", () => console.log(process.moduleLoadList.join()))'
  const env = {
    BELLCAST_PORT: "none",
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(lister)}`
  }
  // In the bundle, node:http is loaded by `require`, which brings no HTTP client.
  const output = await failing(env, "", { program: sources })
  expect(output).toContain("NativeModule http,")
  expect(output).not.toContain("undici")
})
