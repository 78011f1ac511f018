// A small disk: a tmpfs that can be filled to the last byte, and freed. Needs root.
import { execFile } from "node:child_process"
import { mkdir, mkdtemp, open, rm, statfs } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import type { Store } from "./store.ts"

const run = promisify(execFile)

/** Some cycles of a run fit, and filling the rest takes no more memory than this. */
const sizeMebibytes = 512

const mebibyte = 1024 * 1024

export class SmallStore implements Store {
  readonly kind = "small"
  readonly folder: string
  /** Beside the server's files, which begin with `jetstream`. */
  readonly #ballast: string

  private constructor(folder: string) {
    this.folder = folder
    this.#ballast = join(folder, "ballast")
  }

  static async make(folder: string): Promise<SmallStore> {
    await mkdir(folder, { recursive: true })
    await run("mount", ["-t", "tmpfs", "-o", `size=${sizeMebibytes}m`, "small", folder])
    return new SmallStore(folder)
  }

  /** Leaves this many bytes free: 0 means that the next write fails with ENOSPC. */
  async fill(leaveBytes = 0): Promise<void> {
    const file = await open(this.#ballast, "a")
    try {
      while (true) {
        const { bavail, bsize } = await statfs(this.folder)
        const room = bavail * bsize - leaveBytes
        if (room < bsize) return
        await file.write(Buffer.alloc(Math.min(room, mebibyte)))
      }
    } catch (error) {
      // The server wrote at the same time.
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error
    } finally {
      await file.close()
    }
  }

  async free(): Promise<void> {
    await rm(this.#ballast, { force: true })
  }

  async settle(): Promise<void> {}

  async remove(): Promise<void> {
    await run("umount", [this.folder]).catch(() => run("umount", ["-l", this.folder]))
    await rm(this.folder, { recursive: true, force: true })
  }
}

let reason: Promise<string | undefined> | undefined

/** Why this machine cannot have one; undefined: it can. */
export const smallDiskUnavailable = (): Promise<string | undefined> => {
  reason ??= (async () => {
    const folder = await mkdtemp(join(tmpdir(), "torture-probe-"))
    try {
      await (await SmallStore.make(folder)).remove()
      return undefined
    } catch {
      return "needs root, to mount a tmpfs"
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })()
  return reason
}
