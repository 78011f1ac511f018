// A small disk of its own for a test, which can be full and have space again.
import { execFile } from "node:child_process"
import { statfs } from "node:fs/promises"
import { promisify } from "node:util"
import { temporaryFolder } from "./folder.ts"

const run = promisify(execFile)

export interface Disk extends AsyncDisposable {
  readonly folder: string
  /** Leaves so many KiB free. */
  readonly fill: (kibibytesLeft: number) => Promise<void>
  /** Gives the disk its first size again. */
  readonly empty: () => Promise<void>
}

const mebibytes = 2_048

/**
 * A tmpfs; undefined: this machine does not let us mount one. `given`: an empty folder; unset: one
 * that ends with the test.
 */
export const smallDisk = async (given?: string): Promise<Disk | undefined> => {
  const folder = given ?? (await temporaryFolder())
  try {
    await run("mount", ["-t", "tmpfs", "-o", `size=${mebibytes}m`, "tmpfs", folder])
  } catch {
    return undefined
  }
  const resize = (size: string) => run("mount", ["-o", `remount,size=${size}`, folder])
  return {
    folder,
    fill: async (kibibytesLeft) => {
      const shrink = async () => {
        const { bfree, blocks, bsize } = await statfs(folder)
        await resize(`${((blocks - bfree) * bsize) / 1024 + kibibytesLeft}k`)
      }
      // It is refused where somebody stored more than is left meanwhile.
      for (let tries = 1; tries < 10; tries++)
        if (
          await shrink().then(
            () => true,
            () => false
          )
        )
          return
      await shrink()
    },
    empty: async () => void (await resize(`${mebibytes}m`)),
    [Symbol.asyncDispose]: async () => void (await run("umount", ["--lazy", folder]))
  }
}
