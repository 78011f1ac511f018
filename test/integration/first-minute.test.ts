// The commands of the README's first minute, run against a service on a new embedded server.
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, it } from "vitest"
import { until } from "../support/client.ts"
import { makeFolder } from "../support/folder.ts"
import { sources, startService } from "../support/service.ts"
import { spawnCli } from "../support/spawn-cli.ts"
import { useShared } from "../support/use-service.ts"

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8")
const section = readme.slice(
  readme.indexOf("## The first minute"),
  readme.indexOf("## In a web page")
)
const blocks = [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, text]) => text!)
const lineWith = (word: string): string => {
  const block = blocks.find((text) => text.includes(word))
  assert.isDefined(block, word)
  return block!
}

const shared = useShared(async (opened) => {
  const folder = opened.use(await makeFolder()).path
  // Starts as `make run` does: the defaults that other tests set must come from the flag here.
  const env = {
    BELLCAST_AUTH_POLICIES: "",
    BELLCAST_ALLOW_LOOPBACK_ENDPOINTS: "",
    BELLCAST_CHANNEL_WRITE_PRINCIPALS: "",
    BELLCAST_DATA_DIR: join(folder, "data")
  }
  const options = { cwd: folder, env, args: ["--development"], program: sources }
  const service = opened.use(await startService({ ...options, readyTimeoutMillis: 60_000 }))
  return { folder, service }
})

it("tells what really happens", { timeout: 90_000 }, async () => {
  const { folder, service } = shared
  const typed = async (text: string) => {
    const command = text.replaceAll("http://127.0.0.1:9999", `http://127.0.0.1:${service.port}`)
    return (await promisify(execFile)("sh", ["-c", command])).stdout
  }
  const [, channel] = /^make listen CHANNEL=(\S+)$/m.exec(lineWith("make listen"))!
  // Finds the service by its data folder, whatever its port.
  const dataDir = { BELLCAST_DATA_DIR: join(folder, "data") }
  await using listener = await spawnCli(["listen", channel!], dataDir, folder)
  await listener.printed(/^listening on/m)

  const answer = await typed(lineWith("curl -i"))
  assert.match(answer, /^HTTP\/1\.1 202 /)
  await listener.printed(/ after \d+ ms .*"title":"Hello".*"web_push":8030/)

  const [ask, audit] = lineWith("make audit").split("\n")
  assert.strictEqual(
    /^location: (\S+)\r$/im.exec(answer)?.[1],
    /http\S+/.exec(ask!)![0].replace("9999", String(service.port))
  )
  const told = await until(
    async () => JSON.parse(await typed(ask!)).data,
    ({ finished }) => finished
  )
  assert.deepInclude(told, { accepted: 1, delivered: 1 })
  await using cli = await spawnCli(
    ["audit", /^make audit BROADCAST=(\d+)$/.exec(audit!)![1]!],
    dataDir,
    folder
  )
  await cli.printed(/delivered/)
  assert.strictEqual(await cli.exit(), 0)

  // As `make publish` does: nobody has to be granted a right first.
  const publish = ["publish", '{"n":1}', "--channel", channel!]
  await using publisher = await spawnCli(publish, dataDir, folder)
  await publisher.printed(/^broadcast \d+ is accepted$/m)
  await listener.printed(/\{"n":1\}/)
})

it("names the version of the API, the metrics port, and whom nobody can write to", async () => {
  const { service } = shared
  const root = /HTTP API +(\S+)/.exec(service.output())?.[1] ?? ""
  assert.equal(root, `http://127.0.0.1:${service.port}/v1/`)
  assert.equal((await fetch(root)).status, 200)
  const metrics = /Metrics, probes +(\S+)/.exec(service.output())?.[1] ?? ""
  assert.equal((await fetch(metrics)).status, 200)
  assert.match(service.output(), /"level":40.*push services can write to nobody.*VAPID_SUBJECT/)
})
