// A file system that forgets, at a power loss, whatever was not synced. Needs root and /dev/fuse.
import { type ChildProcess, execFile, fork } from "node:child_process"
import { once } from "node:events"
import { access, constants, mkdir, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import type { Command } from "./forgetful/daemon.ts"
import type { Strictness } from "./forgetful/tree.ts"
import type { Store } from "./store.ts"

export type { Strictness } from "./forgetful/tree.ts"

const run = promisify(execFile)
const daemonFile = fileURLToPath(new URL("./forgetful/daemon.ts", import.meta.url))

/** TORTURE_STRICTNESS=posix makes power losses as hard as POSIX allows. */
const usualStrictness = (): Strictness =>
  process.env["TORTURE_STRICTNESS"] === "posix" ? "posix" : "ext4"

export class ForgetfulStore implements Store {
  readonly kind = "forgetful"
  readonly folder: string
  readonly #daemon: ChildProcess
  #isMounted = false

  private constructor(folder: string, daemon: ChildProcess) {
    this.folder = folder
    this.#daemon = daemon
  }

  /** An empty one, mounted on a new folder. */
  static async make(folder: string, strictness = usualStrictness()): Promise<ForgetfulStore> {
    await mkdir(folder, { recursive: true })
    const daemon = fork(daemonFile, [folder, strictness], {
      execArgv: [],
      stdio: ["ignore", "ignore", "inherit", "ipc"]
    })
    const store = new ForgetfulStore(folder, daemon)
    try {
      await store.#mount()
    } catch (error) {
      await store.remove()
      throw error
    }
    return store
  }

  /**
   * Forgets what was not synced; with a seed, a part of it that the seed draws is kept. The server
   * must not run: kill it first, as a power loss does.
   */
  async losePower(seed?: string): Promise<void> {
    await this.#unmount()
    await this.#tell({ do: "lose power", seed })
    await this.#mount()
  }

  async settle(): Promise<void> {
    await this.#tell({ do: "settle" })
  }

  async remove(): Promise<void> {
    if (this.#isMounted) await this.#unmount().catch(() => run("umount", ["-l", this.folder]))
    if (this.#daemon.exitCode === null && this.#daemon.signalCode === null) {
      const exited = once(this.#daemon, "exit")
      this.#daemon.kill("SIGKILL")
      await exited
    }
    await rm(this.folder, { recursive: true, force: true })
  }

  async #mount(): Promise<void> {
    await this.#tell({ do: "mount" })
    this.#isMounted = true
  }

  async #unmount(): Promise<void> {
    await this.#tell({ do: "unmount" })
    this.#isMounted = false
  }

  async #tell(command: Command): Promise<void> {
    const answer = once(this.#daemon, "message", { signal: AbortSignal.timeout(10_000) })
    this.#daemon.send(command)
    const [{ error }] = (await answer) as [{ readonly error: string | undefined }]
    if (error !== undefined) throw new Error(`${command.do} ${this.folder}: ${error}`)
  }
}

let reason: Promise<string | undefined> | undefined

/** Why this machine cannot have one; undefined: it can. */
export const forgetfulUnavailable = (): Promise<string | undefined> => {
  reason ??= (async () => {
    const folder = await mkdtemp(join(tmpdir(), "torture-probe-"))
    try {
      await access("/dev/fuse", constants.R_OK | constants.W_OK)
      await (await ForgetfulStore.make(folder)).remove()
      return undefined
    } catch (error) {
      return `needs root and /dev/fuse (${error instanceof Error ? error.message : String(error)})`
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })()
  return reason
}
