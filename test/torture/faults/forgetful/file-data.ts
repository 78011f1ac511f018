// The bytes of one file, twice: as programs see them, and as they are on the disk. A write changes
// the first; a sync copies what was written to the second; a power loss goes back to the second.

/** Disks write whole pages, and lose whole pages. */
const pageBytes = 4096

const pageOf = (offset: number) => Math.floor(offset / pageBytes)

/** Grows to at least this, at least twofold, so that appending stays linear. */
const grown = (buffer: Buffer, size: number): Buffer => {
  if (size <= buffer.length) return buffer
  const larger = Buffer.alloc(Math.max(size, 2 * buffer.length, pageBytes))
  buffer.copy(larger)
  return larger
}

/** Whether a page that was written but not synced is on the disk all the same. */
export type KeepPage = () => boolean

export class FileData {
  #seen: Buffer = Buffer.alloc(0)
  #size = 0
  #stored: Buffer = Buffer.alloc(0)
  #storedSize = 0
  /** Pages that differ. */
  readonly #dirty = new Set<number>()

  get size(): number {
    return this.#size
  }

  /** What is not synced includes another size. */
  get isResized(): boolean {
    return this.#size !== this.#storedSize
  }

  read(offset: number, length: number): Buffer {
    return this.#seen.subarray(offset, Math.min(this.#size, offset + length))
  }

  write(offset: number, bytes: Buffer): void {
    const end = offset + bytes.length
    this.#seen = grown(this.#seen, end)
    bytes.copy(this.#seen, offset)
    // A hole before it reads as zeros, which are written too.
    this.#mark(Math.min(offset, this.#size), end)
    this.#size = Math.max(this.#size, end)
  }

  resize(size: number): void {
    this.#seen = grown(this.#seen, size)
    if (size < this.#size) this.#seen.fill(0, size, this.#size)
    this.#mark(Math.min(size, this.#size), Math.max(size, this.#size))
    this.#size = size
  }

  sync(): void {
    this.#stored = grown(this.#stored, this.#size)
    for (const page of this.#dirty)
      this.#seen.copy(
        this.#stored,
        page * pageBytes,
        page * pageBytes,
        Math.min(this.#size, (page + 1) * pageBytes)
      )
    this.#storedSize = this.#size
    this.#dirty.clear()
  }

  /** Drops what is not synced, but the pages that are kept. */
  losePower(keep: KeepPage): void {
    const kept = [...this.#dirty].filter(keep)
    const wasShrunk = this.#size < this.#storedSize && keep()
    let size = wasShrunk ? this.#size : this.#storedSize
    for (const page of kept) size = Math.max(size, Math.min(this.#size, (page + 1) * pageBytes))
    const disk = Buffer.alloc(size)
    this.#stored.copy(disk, 0, 0, Math.min(size, this.#storedSize))
    for (const page of kept)
      this.#seen.copy(
        disk,
        page * pageBytes,
        page * pageBytes,
        Math.min(this.#size, (page + 1) * pageBytes)
      )
    this.#stored = disk
    this.#storedSize = size
    this.#seen = Buffer.from(disk)
    this.#size = size
    this.#dirty.clear()
  }

  #mark(from: number, to: number): void {
    for (let page = pageOf(from); page * pageBytes < to; page++) this.#dirty.add(page)
  }
}
