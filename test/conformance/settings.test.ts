// Contract 6: settings. Gateways with settings of their own; all share NATS and a projector.
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

/** Run as one process each: the settings of one do not touch the cases of the others. */
const together = [
  ["under load", "behind a proxy"],
  [
    "asking nobody for patience",
    "whose redirects hold other times",
    "with small pages and batches of any number",
    "deployed"
  ],
  ["of some origins", "with methods switched off"],
  ["read-only", "that does not redirect"]
]

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
    const settings = new Map<string, Gateway[1]>([
      ...gateways.map(([name, env]) => [name, env] as const),
      ["deployed", { VERSION_JSON_PATH: file }]
    ])
    const all = [
      ...together,
      ...[...settings.keys()]
        .filter((name) => !together.flat().includes(name))
        .map((name) => [name])
    ]
    const start = async (names: ReadonlyArray<string>) => {
      const env = prefixed(Object.assign({}, ...names.map((name) => settings.get(name))))
      const { port } = stack.use(await startOwn(nats.url, { roles: "gateway", env }))
      for (const name of names) ports.set(name, port)
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
