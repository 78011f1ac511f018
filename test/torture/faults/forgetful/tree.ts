// Files and folders that forget, at a power loss, whatever was not synced: bytes as well as names.
import type { Random } from "../../random.ts"
import { FileData } from "./file-data.ts"

/**
 * When a name (created, renamed, removed) is safe. `posix`: when its folder is synced, which is all
 * that POSIX promises. `ext4`: at the next sync of anything, as a journal keeps all names in their
 * order. Neither writes anything by itself after some seconds, as real systems do.
 */
export type Strictness = "posix" | "ext4"

interface Common {
  readonly id: number
  mode: number
  modifiedMillis: number
}
export interface FileNode extends Common {
  readonly kind: "file"
  readonly data: FileData
}
export interface FolderNode extends Common {
  readonly kind: "folder"
  /** As programs see them, and as they are on the disk. */
  readonly seen: Map<string, Node>
  readonly stored: Map<string, Node>
}
export type Node = FileNode | FolderNode

/** A name in a folder now means this node; undefined: nothing. */
interface Change {
  readonly folder: FolderNode
  readonly name: string
  readonly node: Node | undefined
}

const apply = (which: "seen" | "stored", { folder, name, node }: Change): void => {
  if (node === undefined) folder[which].delete(name)
  else folder[which].set(name, node)
}

const directory = 0o040_000
const regular = 0o100_000

export class Tree {
  readonly root: FolderNode
  readonly #strictness: Strictness
  #ids = 0
  /** Changes of names that are not on the disk, oldest first. A rename is one group of two. */
  #pending: Array<ReadonlyArray<Change>> = []

  constructor(strictness: Strictness) {
    this.#strictness = strictness
    this.root = this.#newFolder(0o755)
  }

  createFile(folder: FolderNode, name: string, mode: number): FileNode {
    const node: FileNode = {
      kind: "file",
      id: ++this.#ids,
      mode: regular | (mode & 0o7777),
      modifiedMillis: Date.now(),
      data: new FileData()
    }
    this.#change([{ folder, name, node }])
    return node
  }

  createFolder(folder: FolderNode, name: string, mode: number): FolderNode {
    const node = this.#newFolder(mode)
    this.#change([{ folder, name, node }])
    return node
  }

  remove(folder: FolderNode, name: string): void {
    this.#change([{ folder, name, node: undefined }])
  }

  rename(from: FolderNode, name: string, to: FolderNode, newName: string): void {
    const node = from.seen.get(name)
    this.#change([
      { folder: from, name, node: undefined },
      { folder: to, name: newName, node }
    ])
  }

  /** `dataOnly`: fdatasync, which leaves names alone unless the size changed. */
  syncFile({ data }: FileNode, dataOnly: boolean): void {
    const needsJournal = !dataOnly || data.isResized
    data.sync()
    if (this.#strictness === "ext4" && needsJournal) this.#commit()
  }

  syncFolder(folder: FolderNode): void {
    if (this.#strictness === "ext4") {
      this.#commit()
      return
    }
    for (const change of this.#pending.flat()) if (change.folder === folder) apply("stored", change)
    this.#pending = this.#pending
      .map((group) => group.filter((change) => change.folder !== folder))
      .filter((group) => group.length > 0)
  }

  /** Makes everything safe. */
  settle(): void {
    this.#commit()
    const sync = (folder: FolderNode) => {
      for (const node of folder.seen.values())
        if (node.kind === "folder") sync(node)
        else node.data.sync()
    }
    sync(this.root)
  }

  /** Goes back to what is on the disk. `torn`: also a part, drawn by it, of what was not synced. */
  losePower(torn: Random | undefined): void {
    if (torn !== undefined) this.#keepSome(torn)
    this.#pending = []
    const forget = (folder: FolderNode) => {
      folder.seen.clear()
      for (const [name, node] of folder.stored) {
        folder.seen.set(name, node)
        if (node.kind === "folder") forget(node)
        else node.data.losePower(() => torn?.chance(0.5) ?? false)
      }
    }
    forget(this.root)
  }

  #keepSome(torn: Random): void {
    if (this.#strictness === "posix") {
      for (const change of this.#pending.flat()) if (torn.chance(0.5)) apply("stored", change)
      return
    }
    // A journal holds the beginning of what happened.
    const kept = this.#pending.slice(0, torn.between(0, this.#pending.length))
    for (const change of kept.flat()) apply("stored", change)
  }

  #commit(): void {
    for (const change of this.#pending.flat()) apply("stored", change)
    this.#pending = []
  }

  #change(group: ReadonlyArray<Change>): void {
    for (const change of group) {
      apply("seen", change)
      change.folder.modifiedMillis = Date.now()
    }
    this.#pending.push(group)
  }

  #newFolder(mode: number): FolderNode {
    return {
      kind: "folder",
      id: ++this.#ids,
      mode: directory | (mode & 0o7777),
      modifiedMillis: Date.now(),
      seen: new Map(),
      stored: new Map()
    }
  }
}
