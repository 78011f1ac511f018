// Contract 6: settings. Each case has a gateway with its own settings; all share NATS and a
// projector.
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { startNats } from "../support/nats.ts"
import { Api } from "./api.ts"
import { addresses } from "./settings/addresses.ts"
import { lifecycle } from "./settings/lifecycle.ts"
import { limits } from "./settings/limits.ts"
import { define, type Gateway, run } from "./table.ts"
import { startOwn, targetOf, targetUrl } from "./target.ts"

/**
 * Processes that start at the same time. All at once would each take over 30 s on a busy machine.
 */
const atOnce = 4

const gateways = [...lifecycle, ...addresses, ...limits]

const prefixed = (env: Gateway[1]): Gateway[1] =>
  Object.fromEntries(Object.entries(env).map(([name, value]) => [`BELLCAST_${name}`, value]))

describe.skipIf(targetUrl !== undefined)("a gateway", () => {
  const stack = new AsyncDisposableStack()
  const ports = new Map<string, number>()
  let natsUrl = ""
  const portOf = (name: string) => targetOf(`http://127.0.0.1:${ports.get(name)}`)

  beforeAll(async () => {
    const nats = stack.use(await startNats())
    natsUrl = nats.url
    stack.use(await startOwn(nats.url, { roles: "projection" }))
    const folder = await mkdtemp(join(tmpdir(), "bellcast-"))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, "version.json")
    await writeFile(file, '{"name":"bellcast","version":"1.2.3","commit":"abc","source":"here"}')
    const all = [
      ...gateways.map(([name, env]) => [name, env] as const),
      ["deployed", { VERSION_JSON_PATH: file }] as const
    ]
    const start = async ([name, env]: (typeof all)[number]) => {
      const options = { roles: "gateway", env: prefixed(env) }
      ports.set(name, stack.use(await startOwn(nats.url, options)).port)
    }
    for (let i = 0; i < all.length; i += atOnce)
      await Promise.all(all.slice(i, i + atOnce).map(start))
  }, 120_000)
  afterAll(() => stack.disposeAsync())

  for (const [name, , cases] of gateways) describe(name, () => run(cases, () => portOf(name)))

  describe("deployed", () => {
    run(
      [
        define({
          name: "says what is deployed, from the file it was told",
          request: { method: "GET", path: "/__version__", as: null },
          expected: {
            status: 200,
            exactly: { name: "bellcast", version: "1.2.3", commit: "abc", source: "here" }
          }
        })
      ],
      () => portOf("deployed")
    )
  })

  it("does not know what is deployed without that file", async () => {
    const response = await new Api(portOf("under load")).send({
      method: "GET",
      path: "/__version__",
      as: null
    })
    expect(response.status).toBe(404)
    expect(response.json.errno).toBe(111)
  })

  it("does not start with settings it cannot use, and names all of them", async () => {
    const bad = {
      BELLCAST_BACKOFF: "soon",
      BELLCAST_EOS: "2026-13-40",
      BELLCAST_READONLY: "perhaps"
    }
    await expect(startOwn(natsUrl, { roles: "gateway", env: bad })).rejects.toThrow(
      /READONLY.*BACKOFF.*EOS/s
    )
  })
})
