// The folder of one embedded nats-server: its configuration, log and addresses, the login of its
// only user, the address of the API beside it, and the lock that keeps a second server out.
import { execFile } from "node:child_process"
import { randomBytes, randomUUID } from "node:crypto"
import { existsSync } from "node:fs"
import { link, readdir, readFile, rename, rm, stat } from "node:fs/promises"
import { join, resolve } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import * as Effect from "effect/Effect"
import { createOnce, replace } from "#secrets/whole-file.ts"

export const folderAt = (root: string) => {
  const at = resolve(root)
  return {
    root: at,
    config: join(at, "nats.conf"),
    log: join(at, "nats.log"),
    store: join(at, "store"),
    /** Password of the only user. Made once. */
    password: join(at, "password"),
    /** The address with the login, for other clients. Exists while the server runs. */
    url: join(at, "url"),
    /** BELLCAST_AUTH_POLICIES of the last start. */
    policies: join(at, "policies"),
    /** Address of the HTTP API beside this server, with the pid of the service. */
    api: join(at, "api"),
    /** Where nats-server writes on which port it listens. */
    ports: join(at, "ports"),
    /**
     * Holds the pid of the supervisor. nats-server has no lock of its own: two servers would share
     * a store and damage it.
     */
    lock: join(at, "lock")
  }
}

export type Folder = ReturnType<typeof folderAt>

export interface Address {
  readonly pid: number
  /** Contains the password: never log it. */
  readonly url: string
  readonly port: number
}

/**
 * Where the server of this folder listens. Undefined: it does not run. A killed server leaves its
 * ports file behind, and another program may listen on the port since: it must not get the login.
 */
export const addressIn = async (folder: Folder): Promise<Address | undefined> => {
  try {
    const name = (await readdir(folder.ports)).find((each) => each.endsWith(".ports"))
    if (name === undefined) return undefined
    const pid = Number(/_(\d+)\.ports$/.exec(name)?.[1])
    if (!(await runsWith(pid, folder.config))) return undefined
    const { nats } = JSON.parse(await readFile(join(folder.ports, name), "utf8")) as {
      readonly nats: ReadonlyArray<string>
    }
    const { port } = new URL(nats[0]!)
    return { url: withLogin(nats[0]!, await passwordIn(folder.password)), port: Number(port), pid }
  } catch {
    // nats-server creates the file before it writes the content.
    return undefined
  }
}

const user = "bellcast"

/** 32 bytes, in base64url. */
const passwordForm = /^[A-Za-z0-9_-]{43}$/

/** The password in the file. Undefined: there is no file. */
const passwordIn = async (file: string): Promise<string | undefined> => {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined
    throw error
  })
  if (text === undefined || passwordForm.test(text)) return text
  throw new Error(`${file} is damaged: remove it, and the next start makes another`)
}

/** The password in the file; made now if there is none. */
export const ensurePassword = async (file: string): Promise<string> => {
  const password = await passwordIn(file)
  if (password !== undefined) return password
  await createOnce(file, randomBytes(32).toString("base64url"))
  return (await passwordIn(file))!
}

/**
 * The part of nats.conf that demands the login. A bcrypt hash would hide nothing, as the service
 * and the command line need the password in a file beside it.
 */
export const authorizationOf = (password: string | undefined): string =>
  password === undefined ? "" : `authorization { user: "${user}", password: "${password}" }`

/** The address with the login in it. */
const withLogin = (url: string, password: string | undefined): string =>
  password === undefined ? url : url.replace("://", `://${user}:${password}@`)

const runs = (pid: number): boolean => {
  // Signals to 0 and to negative numbers go to groups of processes.
  if (!(pid > 0)) return false
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"
  }
}

/** The command line that `ps` prints. Empty: no such process runs. Undefined: `ps` failed. */
const printedByPs = (pid: number): Promise<string | undefined> =>
  new Promise((resolve) => {
    // -ww: in full. Without it, ps cuts the line to the width of a terminal.
    const words = ["-ww", "-o", "command=", "-p", String(pid)]
    execFile("ps", words, { timeout: 2_000 }, (error, stdout) =>
      // ps ends with 1 when there is no such process.
      resolve(error === null || error.code === 1 ? stdout : undefined)
    )
  })

/**
 * Whether the process runs and has this word in its command line. After a reboot its pid may belong
 * to another program. True where the command line cannot be read. `proc`: macOS has no such folder.
 */
export const runsWith = async (pid: number, word: string, proc = "/proc"): Promise<boolean> => {
  if (!runs(pid)) return false
  if (existsSync(proc)) {
    const text = await readFile(`${proc}/${pid}/cmdline`, "utf8").catch(() => undefined)
    return text === undefined || text.includes(word)
  }
  // ps rewrites other characters, by the locale.
  if (!/^[ -[\]-~]*$/.test(word)) return true
  return (await printedByPs(pid))?.includes(word) ?? true
}

/**
 * The supervisor creates the lock and writes its pid at once. A lock that has no pid for longer is
 * of a supervisor that a power cut or a full disk stopped between the two.
 */
const pidMillisMax = 500

/** A lock as it was read. */
interface Held {
  readonly holder: string
  readonly writtenAt: number
}

/** Removes a lock that a killed server left, unless another start has replaced it meanwhile. */
const removeLock = async (lock: string, { holder, writtenAt }: Held): Promise<void> => {
  const aside = `${lock}.${randomUUID()}`
  try {
    await rename(lock, aside)
  } catch {
    // Another start has removed it.
    return
  }
  const { mtimeMs } = await stat(aside)
  const isAnother = mtimeMs !== writtenAt || (await readFile(aside, "utf8")) !== holder
  if (isAnother) await link(aside, lock).catch(() => {})
  await rm(aside, { force: true })
}

/**
 * Waits until no server holds the folder: after its parent was killed, a server needs a moment to
 * end. False: it is still held after the timeout.
 */
export const released = async (folder: Folder, timeoutMillis: number): Promise<boolean> => {
  const deadline = AbortSignal.timeout(timeoutMillis)
  let withPidAt = performance.now()
  for (;;) {
    const writtenAt = (await stat(folder.lock).catch(() => undefined))?.mtimeMs
    const holder = await readFile(folder.lock, "utf8").catch(() => undefined)
    if (holder === undefined || writtenAt === undefined) return true
    const now = performance.now()
    const hasPid = /^[1-9]\d*\s*$/.test(holder)
    if (hasPid) withPidAt = now
    const isHeld = hasPid
      ? await runsWith(Number(holder), folder.lock)
      : now - withPidAt < pidMillisMax
    if (!isHeld) {
      await removeLock(folder.lock, { holder, writtenAt })
      return true
    }
    if (deadline.aborted) return false
    await sleep(25)
  }
}

/** A shell expression for the content of a file: shows a command without the secret in it. */
export const textOf = (file: string): string => {
  const path = /^[\w./-]+$/.test(file) ? file : `'${file.replaceAll("'", `'\\''`)}'`
  return `"$(cat ${path})"`
}

export const logTail = async (folder: Folder, lines: number): Promise<string> => {
  const text = await readFile(folder.log, "utf8").catch(() => "")
  return text.trimEnd().split("\n").slice(-lines).join("\n")
}

/** Writes the file for as long as the scope lives. */
export const announceApi = (folder: Folder, url: string) =>
  Effect.acquireRelease(
    Effect.promise(() => replace(folder.api, `${process.pid} ${url}\n`)),
    () => Effect.promise(() => rm(folder.api, { force: true }))
  )

/** The base URL of the running service. Undefined: none runs, or one that serves no HTTP. */
export const apiAddressIn = async (folder: Folder): Promise<string | undefined> => {
  const text = await readFile(folder.api, "utf8").catch(() => "")
  const [pid = "", url] = text.trim().split(" ")
  // A service that was killed leaves its file behind.
  return url !== undefined && (await runsWith(Number(pid), "main.ts")) ? url : undefined
}
