// How long the disk takes to keep a write: rates of everything that is stored follow it by a factor
// of 2.5.
import { closeSync, fdatasyncSync, openSync, unlinkSync, writeSync } from "node:fs"
import { join } from "node:path"

const writes = 100
const block = Buffer.alloc(4_096, 1)

/** Milliseconds of `fdatasync` after a write of 4 KB, in words. */
export const fsyncOf = (folder: string): string => {
  const file = join(folder, "fsync")
  const descriptor = openSync(file, "w")
  const millis = Array.from({ length: writes }, () => {
    const start = performance.now()
    writeSync(descriptor, block)
    fdatasyncSync(descriptor)
    return performance.now() - start
  }).sort((a, b) => a - b)
  closeSync(descriptor)
  unlinkSync(file)
  const at = (share: number) => millis[Math.floor(writes * share)]!.toFixed(1)
  return `fsync p50 ${at(0.5)} ms, p90 ${at(0.9)} ms`
}
