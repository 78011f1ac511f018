// The examples of streams/README.md for clients of other makers, as they stand there, under the
// accounts file: the command `nats` and nats.py. Each is left out, with a line that says so, where
// it is not installed.
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { accounts, passwords } from "../support/accounts.ts"
import { call, until } from "../support/client.ts"
import { startConfiguredNats } from "../support/nats-configured.ts"
import { claimPort } from "../support/ports.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { type Service, startService } from "../support/service.ts"
import { idOf } from "../support/users.ts"

/** The examples name a user of another policy. */
const anna = idOf("anna")
const readme = readFileSync(new URL("../../streams/README.md", import.meta.url), "utf8").replaceAll(
  "openid:42",
  anna
)
const blockWith = (language: string, text: string): string => {
  const blocks = [...readme.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, "gms"))]
  return blocks.map(([, block = ""]) => block).find((block) => block.includes(text)) ?? ""
}

const isThere = (command: string, ...args: ReadonlyArray<string>): boolean => {
  const isFound = spawnSync(command, args).status === 0
  if (!isFound)
    process.stdout.write(`skipped: ${[command, ...args].join(" ")} does not work here\n`)
  return isFound
}
const hasPython = isThere("python3", "-c", "import nats")
const hasNats = isThere("nats", "--version")

describe("clients of other makers", { timeout: 60_000 }, () => {
  let port = 0
  let server: AsyncDisposable
  let push: PushService
  let service: Service

  const urlOf = (user: string) => `nats://${user}:word@127.0.0.1:${port}`
  const env = {
    BELLCAST_NATS_INBOX_PREFIX: "_INBOX_bellcast",
    BELLCAST_CHANNEL_WRITE_PRINCIPALS: "news=nats:billing",
    BELLCAST_USER_WRITE_PRINCIPALS: "nats:billing"
  }
  beforeAll(async () => {
    port = await claimPort()
    server = await startConfiguredNats(port, `jetstream {}\n${accounts}`, passwords)
    push = await startPushService()
    service = await startService({ natsUrl: urlOf("bellcast"), env })
    const data = push.subscribe().subscription
    const { status } = await call(service.url, "POST", "/subscriptions", "anna", { data })
    assert.equal(status, 201)
  })
  afterAll(async () => {
    for (const each of [service, push, server]) await each?.[Symbol.asyncDispose]()
  })

  const output = (command: string, args: ReadonlyArray<string>, input?: string): string => {
    const { status, stderr, stdout } = spawnSync(command, args, { input, timeout: 30_000 })
    assert.equal(status, 0, `${stderr}`)
    return `${stdout}`
  }
  /** Runs lines of Python, with `nc` and `url` as in the document. */
  const python = (lines: string): string => {
    const body = lines.replaceAll(/^/gm, "    ")
    const program = `import asyncio, json, nats
url = ${JSON.stringify(urlOf("billing"))}
async def main():
${body}
    await nc.close()
asyncio.run(main())`
    return output("python3", ["-c", program])
  }
  const shell = (lines: string): string => {
    const flags = `-s ${urlOf("billing")} --inbox-prefix _INBOX_billing`
    return output("bash", ["-c", `set -e; nats() { command nats ${flags} "$@"; }\n${lines}`])
  }
  const registered = (channel: string) =>
    until(
      () => call(service.url, "GET", "/registrations", "anna"),
      ({ body }) => body.data?.some(({ id }: { readonly id: string }) => id === channel)
    )

  it.runIf(hasPython)(
    "nats.py adds a member, publishes, asks for the state, and no more",
    async () => {
      const example = blockWith("py", "member-put")
      assert.include(python(example), "'message': 'Accepted'")
      await registered("news")
      const request = (operation: string, body: object, source = "billing") =>
        JSON.parse(
          python(`nc = await nats.connect(url, inbox_prefix="_INBOX_billing")
body = json.dumps(json.loads(${JSON.stringify(JSON.stringify(body))})).encode()
msg = await nc.request("bellcast.api.${source}.${operation}", body, timeout=3)
print(msg.data.decode())`)
        )
      const { id } = request("publish", { data: { n: 1 }, to: { users: [anna] } })
      await until(
        async () => request("broadcast", { broadcast: id }).data,
        (data) => data.state === "finished" && data.delivered === 1
      )
      const other = { data: {}, to: { channels: ["sport"] } }
      assert.deepInclude(request("publish", other), { code: 403, errno: 121 })
      assert.throws(() => request("publish", other, "shop"), /[Tt]imeout|[Nn]o responders/)
    }
  )

  it.runIf(hasNats)("the command nats does the same, and publishes to a channel", async () => {
    const request = (operation: string, body: object) =>
      shell(`nats request bellcast.api.billing.${operation} '${JSON.stringify(body)}'`)
    const member = (channel: string) => request("member-put", { channel, user: anna })
    assert.include(member("news"), '"code":202')
    await registered("news")
    const refused = [member("sport"), request("publish", { data: {}, to: { channels: ["sport"] } })]
    for (const text of refused) assert.match(text, /"code":403,"errno":121/)
    const direct = shell(blockWith("sh", "bellcast.api.billing.publish"))
    const [, id = ""] = /"id":"(\d+)"/.exec(direct) ?? []
    const { data } = (await call(service.url, "GET", `/broadcasts/${id}`, "anna")).body
    assert.isUndefined(data)
    const shown = `nats request bellcast.api.billing.broadcast '{"broadcast":"${id}"}'`
    await until(
      async () => shell(shown),
      (text) => /"state":"finished"/.test(text) && /"delivered":1/.test(text)
    )
    const channel = shell(blockWith("sh", "bellcast.cmd.broadcast.billing.news"))
    assert.match(channel, /"stream":"BELLCAST_LOG"/)
    // The command ends as if it had an answer, which it prints.
    assert.notInclude(shell(shown.replace("billing", "shop")), "state")
  })
})
