// The owner of a site, who follows src/browser/own-login.md: makes a service, a site in Express and
// requests of the site's server from the blocks of that document.
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdir, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { type Folder, makeFolder } from "#test/folder.ts"
import { blocksOf, sectionsOf, settingsIn } from "#test/identity/document.ts"
import { startNats } from "#test/nats.ts"
import { claimPort } from "#test/ports.ts"
import { startService } from "#test/service.ts"

const sections = sectionsOf("src/browser/own-login.md")
const cli = fileURLToPath(new URL("../../../src/cli/main.ts", import.meta.url))
const program = fileURLToPath(new URL("site.js", import.meta.url))
const packages = fileURLToPath(new URL("../../../node_modules", import.meta.url))

/** A secret as the document says to make one. */
export const secret = Buffer.alloc(32, "the secret of a site").toString("base64")

/** The first block of a language below a heading that has this text in it. */
export const blockOf = (heading: string, language: string, text = ""): string => {
  const blocks = blocksOf(sections.get(heading) ?? "", language)
  const block = blocks.find((each) => each.includes(text))
  if (block === undefined) throw new Error(`no ${language} with "${text}" below ${heading}`)
  return block
}

/** The policy that the document shows for the pages. */
export const documentedPolicy = () => blockOf("A strict Content-Security-Policy", "text").trim()

/** A service with the settings of the document, for a site at a port of this machine. */
export const startOwner = async () => {
  const opened = new AsyncDisposableStack()
  const nats = opened.use(await startNats())
  const port = await claimPort()
  const site = `http://localhost:${port}`
  const here = (text: string) => text.replaceAll("https://www.example.org", site)
  const [start = {}] = settingsIn(sections.get("1. Start the service") ?? "")
  const [closed = {}] = settingsIn(sections.get("Channels") ?? "")
  const settings = Object.fromEntries(
    Object.entries({ ...start, ...closed }).map(([name, value]) => [
      name,
      value === "..." ? secret : here(value)
    ])
  )
  const env = { BELLCAST_CHANNEL_WRITE_PRINCIPALS: "", ...settings }
  const service = opened.use(await startService({ natsUrl: nats.url, env }))

  /** Runs a block of the document in a shell; resolves with what it printed. */
  const run = async (block: string, TOKEN = "", cwd = "."): Promise<string> => {
    const script = `bellcast() { "${process.execPath}" "${cli}" "$@"; }\n${here(block)}`
    // Without the variable npx asks the registry for a verb that it does not find here.
    const offline = { npm_config_offline: "true" }
    const all = { ...process.env, ...offline, ...settings, BELLCAST_NATS_URL: nats.url, TOKEN }
    const text = script.replaceAll("http://127.0.0.1:9999", `http://127.0.0.1:${service.port}`)
    const { stdout } = await promisify(execFile)("sh", ["-euc", text], { env: all, cwd })
    return stdout.trim()
  }

  /** A checkout with the `.env` of the document. */
  const checkOut = async (): Promise<Folder> => {
    const env = here(blockOf("1. Start the service", "sh", "SIGNED_SECRETS")).replace("...", secret)
    const folder = await makeFolder({ ".env": env })
    for (const name of ["package.json", "src"])
      await symlink(join(packages, "..", name), join(folder.path, name))
    return folder
  }

  return {
    service,
    checkOut,
    settings,
    port,
    site,
    run,
    [Symbol.asyncDispose]: () => opened.disposeAsync()
  }
}

export type Owner = Awaited<ReturnType<typeof startOwner>>

const violations = `window.violations = []
addEventListener("securitypolicyviolation", ({ violatedDirective }) =>
  violations.push(violatedDirective))`

/** The site's own part of the route handler for Next.js. */
const userOf = `export const userOf = ({ headers }) => {
  const [, id] = /user=(\\d+)/.exec(headers.get("cookie")) ?? []
  return id && { id: Number(id) }
}`

const filesIn = async (folder: Folder, owner: Owner, policy: string | undefined) => {
  const at = (name: string) => join(folder.path, name)
  await mkdir(at("public"))
  await mkdir(at("app/push-token"), { recursive: true })
  await symlink(packages, at("node_modules"))
  const page = "5. Show a button"
  const files = {
    "page.html": blockOf(page, "html"),
    "push-token.mjs": blockOf("3. Sign your users", "js"),
    "app/push-token/route.js": blockOf("3. Sign your users", "js", "GET(request)"),
    "app/session.js": userOf,
    "public/push.js": blockOf(page, "js") + blockOf("Logout", "js"),
    "public/push-worker.js": blockOf("4. Serve four files", "js"),
    "public/sw.js": blockOf("A PWA that has a worker already", "js"),
    "public/violations.js": policy === undefined ? "" : violations
  }
  for (const [name, text] of Object.entries(files)) await writeFile(at(name), text)
  const copy = blockOf("4. Serve four files", "sh", "bellcast client")
  await owner.run(copy.replace("../site/", ""), "", folder.path)
}

/** The site in Express, with the blocks of the document. `policy`: of all its responses. */
export const startExpress = async (owner: Owner, policy?: string): Promise<AsyncDisposable> => {
  const folder = await makeFolder()
  await filesIn(folder, owner, policy)
  const env = {
    ...process.env,
    PORT: String(owner.port),
    PUSH_PORT: String(owner.service.port),
    PUSH_SECRET: secret,
    ...(policy === undefined ? {} : { POLICY: policy })
  }
  const stdio = ["ignore", "pipe", "inherit"] as const
  const site = spawn(process.execPath, [program], { cwd: folder.path, env, stdio: [...stdio] })
  const exited = once(site, "exit")
  await Promise.race([
    once(site.stdout!, "data"),
    exited.then(() => Promise.reject(new Error("the site has ended")))
  ])
  return {
    [Symbol.asyncDispose]: async () => {
      site.kill("SIGKILL")
      await exited
      await folder[Symbol.asyncDispose]()
    }
  }
}
