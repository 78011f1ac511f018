// The copies of `bellcast client` in the sources of a site: bundled by Vite, whose page subscribes
// in a real Firefox, and typed.
import { spawnSync } from "node:child_process"
import { existsSync, globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { beforeAll, describe, expect, it } from "vitest"
import { basic } from "#test/client.ts"
import { type Folder, makeFolder } from "#test/folder.ts"
import { runCli } from "#test/run-cli.ts"
import { firefoxPath } from "../browser.ts"
import { Stage } from "./stage.ts"

const modules = fileURLToPath(new URL("../../../node_modules/", import.meta.url))

const main = `import { connect, type Push } from "./bellcast/client.js"
import { errors, sentenceOf } from "./bellcast/words.js"

declare global {
  interface Window { start: (url: string, user: string, token: string) => Promise<Push> }
}

window.start = async (url, user, token) => {
  const push = await connect({ url, worker: "/bellcast/worker.js", user, token: () => token })
  document.title = sentenceOf(push)
  if (push.error) document.title = errors[push.error.code]
  return push
}
`
const ownWorker = `/// <reference path="./bellcast/worker.d.ts" />
export {}
declare const self: ServiceWorkerGlobalScope
self.bellcast = { name: "My site", reuse: true, onclick: ({ url }) => url !== undefined }
`

const program = (name: string, args: ReadonlyArray<string>, cwd: string) => {
  const path = join(modules, name)
  const { status, stderr, stdout } = spawnSync(process.execPath, [path, ...args], {
    cwd,
    encoding: "utf8"
  })
  return { status, output: stdout + stderr }
}
const build = (folder: Folder) => program("vite/bin/vite.js", ["build"], folder.path)

const filesOf = (source: string) => ({
  "index.html": `<!doctype html><html lang="en"><title>Site</title>
    <script type="module" src="/main.ts"></script></html>`,
  "main.ts": source
})

describe("the copies of bellcast client", () => {
  let site: Folder
  beforeAll(async () => {
    site = await makeFolder({ ...filesOf(main), "worker.ts": ownWorker })
    for (const out of ["bellcast", "public/bellcast"])
      expect((await runCli(["client", "--out", join(site.path, out)])).code).toBe(0)
    return () => site[Symbol.asyncDispose]()
  })

  it("have types, without the settings of TypeScript that hide faults", async () => {
    const check = (lib: string, file: string) =>
      program(
        "typescript/bin/tsc",
        ["--noEmit", "--strict", "--target", "es2022", "--module", "preserve"].concat([
          "--types",
          "",
          "--lib",
          lib,
          file
        ]),
        site.path
      )
    expect(check("es2022,dom,dom.iterable", "main.ts")).toEqual({ status: 0, output: "" })
    expect(check("es2022,webworker", "worker.ts")).toEqual({ status: 0, output: "" })
  })

  it("are refused by Vite from the folder `public`, as the document says", async () => {
    await using other = await makeFolder(filesOf(main.replaceAll("./bellcast/", "/bellcast/")))
    await runCli(["client", "--out", join(other.path, "public/bellcast")])
    const { output, status } = build(other)
    expect([status, output]).toEqual([1, expect.stringContaining("/bellcast/")])
  })

  describe.skipIf(firefoxPath === undefined)("bundled by Vite", () => {
    const stage = new Stage()

    it("subscribe in a page", async () => {
      expect(build(site)).toMatchObject({ status: 0 })
      const dist = join(site.path, "dist")
      expect(existsSync(join(dist, "assets"))).toBe(true)
      for (const file of globSync("**/*.*", { cwd: dist }))
        stage.files[`/${file}`] = readFileSync(join(dist, file), "utf8")
      const page = await stage.page("index.html")
      const given = [stage.service.url, stage.user, basic(stage.user)]
      await page.evaluate(`start(...${JSON.stringify(given)}).then(async (push) => {
        window.push = push
        window.device = { clear: async () => {
          await push.signOut()
        } }
        await push.enable()
      })`)
      expect(await page.evaluate("[push.state, push.error]")).toEqual(["on", null])
      expect(await stage.stored()).toHaveLength(1)
    })
  })
})
