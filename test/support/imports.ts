// Subscriptions made with the key of another service, and the verbs that move them in and out.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import webpush from "web-push"
import { startNats } from "./nats.ts"
import { connectAdmin } from "./nats-admin.ts"
import { type PushService, startPushService } from "./push-service.ts"
import { runCli } from "./run-cli.ts"
import { secretEnvironment, startService } from "./service.ts"
import { useShared } from "./use-service.ts"

/** The pair of the other service. */
export const formerPair = webpush.generateVAPIDKeys()
/** The setting by which a service signs with that pair, too. */
export const formerKeys = {
  BELLCAST_VAPID_FORMER_KEYS: `${formerPair.publicKey}:${formerPair.privateKey}`
} as const

/** A browser that subscribed at the other service. */
export const formerBrowser = (push: PushService) =>
  push.subscribe({ applicationServerKey: formerPair.publicKey })

/** The settings of the service on a NATS, which the verbs need, too. */
export const settingsOn = (natsUrl: string) => ({
  ...secretEnvironment,
  ...formerKeys,
  BELLCAST_NATS_URL: natsUrl,
  BELLCAST_ALLOW_LOOPBACK_ENDPOINTS: "true",
  BELLCAST_SUBSCRIPTIONS_PER_USER_PER_HOST_MAX: "50",
  BELLCAST_AUTH_POLICIES: "basicauth"
})

/** A folder for files of lines, until it is disposed of. */
export const makeFiles = () => {
  const folder = mkdtempSync(join(tmpdir(), "bellcast-"))
  let count = 0
  return {
    /** A path where no file is. */
    fresh: () => join(folder, `${count++}.ndjson`),
    /** A file with these lines: texts, or values that are written as JSON. */
    of: (lines: ReadonlyArray<unknown>) => {
      const file = join(folder, `${count++}.ndjson`)
      const texts = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line)))
      writeFileSync(file, texts.join("\n"))
      return file
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true })
  }
}

/** Imports lines that name no key as made with the former one. Returns what the verb printed. */
export const importLines = async (
  natsUrl: string,
  lines: ReadonlyArray<unknown>,
  ...args: ReadonlyArray<string>
) => {
  using files = makeFiles()
  const all = ["import", files.of(lines), "--vapid-public-key", formerPair.publicKey, ...args]
  return await runCli(all, settingsOn(natsUrl))
}

/** As `importLines`; rejects unless all lines are stored. */
export const importAll = async (...what: Parameters<typeof importLines>) => {
  const { code, stderr, stdout } = await importLines(...what)
  const { length } = what[1]
  if (code !== 0 || stdout !== `${length} of ${length} lines were stored\n`)
    throw new Error(`${code} ${stdout}${stderr}`)
}

/** For all cases of a file: servers, a service that also signs with the former pair, and files. */
export const useImports = () =>
  useShared(async (opened) => {
    const nats = opened.use(await startNats({ syncAlways: false }))
    const admin = opened.use(await connectAdmin(nats.url))
    const push = opened.use(await startPushService())
    const service = opened.use(await startService({ natsUrl: nats.url, env: formerKeys }))
    return { nats, admin, push, service, files: opened.use(makeFiles()) }
  })
