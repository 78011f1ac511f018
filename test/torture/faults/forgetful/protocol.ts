// The messages of FUSE between the kernel and a file system, as <linux/fuse.h> has them: version
// 7.31, little-endian.
import type { Node } from "./tree.ts"

export const op = {
  lookup: 1,
  forget: 2,
  getattr: 3,
  setattr: 4,
  mkdir: 9,
  unlink: 10,
  rmdir: 11,
  rename: 12,
  open: 14,
  read: 15,
  write: 16,
  statfs: 17,
  release: 18,
  fsync: 20,
  flush: 25,
  init: 26,
  opendir: 27,
  readdir: 28,
  releasedir: 29,
  fsyncdir: 30,
  access: 34,
  create: 35,
  interrupt: 36,
  destroy: 38,
  batchForget: 42,
  rename2: 45
} as const

/** Values of errno on Linux. */
export const errno = {
  noEntry: 2,
  exists: 17,
  notFolder: 20,
  isFolder: 21,
  invalid: 22,
  notImplemented: 38,
  notEmpty: 39
} as const

/** Of one WRITE. */
export const writeBytesMax = 128 * 1024
export const requestBytesMax = writeBytesMax + 4096

/** Only the kernel changes the files, so it may keep names and attributes. */
const validSeconds = 3_600

const headerBytes = 40

export interface Request {
  readonly opcode: number
  /** Names the request in its response: copied as it is. */
  readonly unique: Buffer
  readonly node: number
  /** The part behind the header; valid until the next read. */
  readonly body: Buffer
}

/** 64-bit numbers here are ids, sizes and offsets: all below 2^53. */
export const readNumber = (buffer: Buffer, offset: number): number =>
  buffer.readUInt32LE(offset) + buffer.readUInt32LE(offset + 4) * 2 ** 32

const writeNumber = (buffer: Buffer, value: number, offset: number): void => {
  buffer.writeUInt32LE(value % 2 ** 32, offset)
  buffer.writeUInt32LE(Math.floor(value / 2 ** 32), offset + 4)
}

export const parse = (message: Buffer): Request => ({
  opcode: message.readUInt32LE(4),
  unique: message.subarray(8, 16),
  node: readNumber(message, 16),
  body: message.subarray(headerBytes, message.readUInt32LE(0))
})

/** The strings of a body from this offset, each of which ends with a zero. */
export const names = (body: Buffer, offset = 0): ReadonlyArray<string> =>
  body.toString("utf8", offset).split("\0").slice(0, -1)

/** A body, or the number of an error. */
export const response = (unique: Buffer, result: Buffer | number): Buffer => {
  const body = typeof result === "number" ? undefined : result
  const message = Buffer.alloc(16 + (body?.length ?? 0))
  message.writeUInt32LE(message.length, 0)
  message.writeInt32LE(typeof result === "number" ? -result : 0, 4)
  unique.copy(message, 8)
  body?.copy(message, 16)
  return message
}

const attributesInto = (buffer: Buffer, offset: number, node: Node): void => {
  const size = node.kind === "file" ? node.data.size : 4096
  const seconds = Math.floor(node.modifiedMillis / 1000)
  writeNumber(buffer, node.id, offset)
  writeNumber(buffer, size, offset + 8)
  writeNumber(buffer, Math.ceil(size / 512), offset + 16)
  for (const time of [24, 32, 40]) writeNumber(buffer, seconds, offset + time)
  for (const time of [48, 52, 56])
    buffer.writeUInt32LE((node.modifiedMillis % 1000) * 1_000_000, offset + time)
  buffer.writeUInt32LE(node.mode, offset + 60)
  buffer.writeUInt32LE(node.kind === "file" ? 1 : 2, offset + 64)
  buffer.writeUInt32LE(4096, offset + 80)
}

export const attributes = (node: Node): Buffer => {
  const buffer = Buffer.alloc(104)
  writeNumber(buffer, validSeconds, 0)
  attributesInto(buffer, 16, node)
  return buffer
}

export const entry = (node: Node): Buffer => {
  const buffer = Buffer.alloc(128)
  writeNumber(buffer, node.id, 0)
  writeNumber(buffer, validSeconds, 16)
  writeNumber(buffer, validSeconds, 24)
  attributesInto(buffer, 40, node)
  return buffer
}

/** FOPEN_KEEP_CACHE: the page cache stays true, as only the kernel writes. */
const keepCache = 2

export const opened = (handle: number): Buffer => {
  const buffer = Buffer.alloc(16)
  writeNumber(buffer, handle, 0)
  buffer.writeUInt32LE(keepCache, 8)
  return buffer
}

export const written = (bytes: number): Buffer => {
  const buffer = Buffer.alloc(8)
  buffer.writeUInt32LE(bytes, 0)
  return buffer
}

/** FUSE_ASYNC_READ | FUSE_ATOMIC_O_TRUNC | FUSE_BIG_WRITES | FUSE_PARALLEL_DIROPS. */
const wanted = 1 | (1 << 3) | (1 << 5) | (1 << 18)

export const initialized = (body: Buffer): Buffer => {
  const buffer = Buffer.alloc(64)
  buffer.writeUInt32LE(7, 0)
  buffer.writeUInt32LE(31, 4)
  buffer.writeUInt32LE(body.readUInt32LE(8), 8)
  buffer.writeUInt32LE((wanted & body.readUInt32LE(12)) >>> 0, 12)
  buffer.writeUInt32LE(writeBytesMax, 20)
  buffer.writeUInt32LE(1, 24)
  return buffer
}

/** As much room as any server asks for: 64 GiB. */
export const roomy = (): Buffer => {
  const buffer = Buffer.alloc(80)
  for (const blocks of [0, 8, 16]) writeNumber(buffer, 2 ** 24, blocks)
  for (const files of [24, 32]) writeNumber(buffer, 2 ** 20, files)
  buffer.writeUInt32LE(4096, 40)
  buffer.writeUInt32LE(255, 44)
  buffer.writeUInt32LE(4096, 48)
  return buffer
}

/** One entry of READDIR. `next`: the offset that the kernel continues from. */
export const directoryEntry = (name: string, node: Node, next: number): Buffer => {
  const length = Buffer.byteLength(name)
  const buffer = Buffer.alloc(Math.ceil((24 + length) / 8) * 8)
  writeNumber(buffer, node.id, 0)
  writeNumber(buffer, next, 8)
  buffer.writeUInt32LE(length, 16)
  buffer.writeUInt32LE(node.mode >>> 12, 20)
  buffer.write(name, 24)
  return buffer
}
