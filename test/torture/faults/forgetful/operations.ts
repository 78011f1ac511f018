// What the file system does for each request of the kernel.
import {
  attributes,
  directoryEntry,
  entry,
  errno,
  initialized,
  names,
  op,
  opened,
  type Request,
  readNumber,
  roomy,
  written
} from "./protocol.ts"
import type { FileNode, FolderNode, Node, Tree } from "./tree.ts"

/** A body, the number of an error, or undefined for requests that get no response. */
type Result = Buffer | number | undefined
type Operation = (request: Request) => Result

const ok = Buffer.alloc(0)
const truncate = 0o1000
/** O_DSYNC and O_SYNC: a write returns when it is on the disk. */
const dataSync = 0o10000
const fullSync = 0o4010000

/** Bits of `valid` in SETATTR. */
const validMode = 1
const validSize = 8

class Refused extends Error {
  readonly errno: number
  constructor(number: number) {
    super(`errno ${number}`)
    this.errno = number
  }
}

export class Operations {
  readonly #tree: Tree
  /** Nodes that the kernel knows, with how often they were looked up. */
  readonly #known = new Map<number, { readonly node: Node; lookups: number }>()
  /** What READDIR lists: taken at OPENDIR, so that removals do not shift it. */
  readonly #listings = new Map<number, ReadonlyArray<readonly [string, Node]>>()
  #handles = 0
  readonly #operations: ReadonlyMap<number, Operation>

  constructor(tree: Tree) {
    this.#tree = tree
    this.#known.set(tree.root.id, { node: tree.root, lookups: 1 })
    this.#operations = new Map<number, Operation>([
      [op.init, ({ body }) => initialized(body)],
      [op.destroy, () => ok],
      [op.interrupt, () => undefined],
      [op.access, () => ok],
      [op.statfs, () => roomy()],
      [op.flush, () => ok],
      [op.release, () => ok],
      [op.lookup, (request) => this.#lookup(request)],
      [op.forget, ({ node, body }) => this.#forget(node, readNumber(body, 0))],
      [op.batchForget, ({ body }) => this.#batchForget(body)],
      [op.getattr, ({ node }) => attributes(this.#node(node))],
      [op.setattr, (request) => this.#setattr(request)],
      [op.mkdir, (request) => this.#mkdir(request)],
      [op.create, (request) => this.#create(request)],
      [op.open, (request) => this.#open(request)],
      [op.read, (request) => this.#read(request)],
      [op.write, (request) => this.#write(request)],
      [op.fsync, (request) => this.#fsync(request)],
      [op.fsyncdir, ({ node }) => this.#fsyncdir(node)],
      [op.unlink, (request) => this.#unlink(request)],
      [op.rmdir, (request) => this.#rmdir(request)],
      [op.rename, (request) => this.#rename(request, 8)],
      [op.rename2, (request) => this.#rename(request, 16)],
      [op.opendir, ({ node }) => this.#opendir(node)],
      [op.readdir, ({ body }) => this.#readdir(body)],
      [op.releasedir, ({ body }) => this.#releasedir(body)]
    ])
  }

  run(request: Request): Result {
    const operation = this.#operations.get(request.opcode)
    if (operation === undefined) return errno.notImplemented
    try {
      return operation(request)
    } catch (error) {
      if (error instanceof Refused) return error.errno
      throw error
    }
  }

  #node(id: number): Node {
    const known = this.#known.get(id)
    if (known === undefined) throw new Refused(errno.noEntry)
    return known.node
  }

  #folder(id: number): FolderNode {
    const node = this.#node(id)
    if (node.kind !== "folder") throw new Refused(errno.notFolder)
    return node
  }

  #file(id: number): FileNode {
    const node = this.#node(id)
    if (node.kind !== "file") throw new Refused(errno.isFolder)
    return node
  }

  /** An entry in a response counts as a lookup, which the kernel forgets later. */
  #entry(node: Node): Buffer {
    const known = this.#known.get(node.id)
    if (known === undefined) this.#known.set(node.id, { node, lookups: 1 })
    else known.lookups++
    return entry(node)
  }

  #lookup({ node, body }: Request): Result {
    const found = this.#folder(node).seen.get(names(body)[0]!)
    return found === undefined ? errno.noEntry : this.#entry(found)
  }

  #forget(id: number, lookups: number): undefined {
    const known = this.#known.get(id)
    if (known === undefined || id === this.#tree.root.id) return
    known.lookups -= lookups
    if (known.lookups <= 0) this.#known.delete(id)
  }

  #batchForget(body: Buffer): undefined {
    const count = body.readUInt32LE(0)
    for (let i = 0; i < count; i++)
      this.#forget(readNumber(body, 8 + 16 * i), readNumber(body, 16 + 16 * i))
  }

  #setattr({ node: id, body }: Request): Result {
    const node = this.#node(id)
    const valid = body.readUInt32LE(0)
    if (valid & validSize) this.#file(id).data.resize(readNumber(body, 16))
    if (valid & validMode) node.mode = (node.mode & ~0o7777) | (body.readUInt32LE(68) & 0o7777)
    return attributes(node)
  }

  #mkdir({ node, body }: Request): Result {
    const folder = this.#folder(node)
    const name = names(body, 8)[0]!
    if (folder.seen.has(name)) return errno.exists
    return this.#entry(this.#tree.createFolder(folder, name, body.readUInt32LE(0)))
  }

  #create({ node, body }: Request): Result {
    const folder = this.#folder(node)
    const name = names(body, 16)[0]!
    const existing = folder.seen.get(name)
    if (existing?.kind === "folder") return errno.isFolder
    const file = existing ?? this.#tree.createFile(folder, name, body.readUInt32LE(4))
    if (existing !== undefined && body.readUInt32LE(0) & truncate) existing.data.resize(0)
    return Buffer.concat([this.#entry(file), opened(0)])
  }

  #open({ node, body }: Request): Result {
    const file = this.#file(node)
    if (body.readUInt32LE(0) & truncate) file.data.resize(0)
    return opened(0)
  }

  #read({ node, body }: Request): Result {
    return this.#file(node).data.read(readNumber(body, 8), body.readUInt32LE(16))
  }

  #write({ node, body }: Request): Result {
    const file = this.#file(node)
    const size = body.readUInt32LE(16)
    const flags = body.readUInt32LE(32)
    file.data.write(readNumber(body, 8), body.subarray(40, 40 + size))
    file.modifiedMillis = Date.now()
    if (flags & dataSync) this.#tree.syncFile(file, (flags & fullSync) !== fullSync)
    return written(size)
  }

  #fsync({ node, body }: Request): Result {
    this.#tree.syncFile(this.#file(node), (body.readUInt32LE(8) & 1) === 1)
    return ok
  }

  #fsyncdir(node: number): Result {
    this.#tree.syncFolder(this.#folder(node))
    return ok
  }

  #unlink({ node, body }: Request): Result {
    const folder = this.#folder(node)
    const name = names(body)[0]!
    const found = folder.seen.get(name)
    if (found === undefined) return errno.noEntry
    if (found.kind === "folder") return errno.isFolder
    this.#tree.remove(folder, name)
    return ok
  }

  #rmdir({ node, body }: Request): Result {
    const folder = this.#folder(node)
    const name = names(body)[0]!
    const found = folder.seen.get(name)
    if (found === undefined) return errno.noEntry
    if (found.kind !== "folder") return errno.notFolder
    if (found.seen.size > 0) return errno.notEmpty
    this.#tree.remove(folder, name)
    return ok
  }

  /** Flags of RENAME2 are refused: exchanging and not replacing. */
  #rename({ opcode, node, body }: Request, namesAt: number): Result {
    if (opcode === op.rename2 && body.readUInt32LE(8) !== 0) return errno.invalid
    const from = this.#folder(node)
    const to = this.#folder(readNumber(body, 0))
    const [name, newName] = names(body, namesAt) as [string, string]
    if (!from.seen.has(name)) return errno.noEntry
    const replaced = to.seen.get(newName)
    if (replaced?.kind === "folder" && replaced.seen.size > 0) return errno.notEmpty
    this.#tree.rename(from, name, to, newName)
    return ok
  }

  #opendir(node: number): Result {
    const handle = ++this.#handles
    this.#listings.set(handle, [...this.#folder(node).seen])
    return opened(handle)
  }

  #readdir(body: Buffer): Result {
    const listing = this.#listings.get(readNumber(body, 0)) ?? []
    let room = body.readUInt32LE(16)
    const entries: Array<Buffer> = []
    for (let i = readNumber(body, 8); i < listing.length; i++) {
      const next = directoryEntry(...listing[i]!, i + 1)
      room -= next.length
      if (room < 0) break
      entries.push(next)
    }
    return Buffer.concat(entries)
  }

  #releasedir(body: Buffer): Result {
    this.#listings.delete(readNumber(body, 0))
    return ok
  }
}
