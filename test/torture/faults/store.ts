// What a nats-server keeps its files on. Every kind is a folder that appears empty and can be
// removed whatever state the server left it in.
import { mkdir, rm } from "node:fs/promises"
import type { StoreKind } from "./fault.ts"
import { ForgetfulStore } from "./forgetful-fs.ts"
import { SmallStore } from "./small-disk.ts"

export interface Store {
  readonly kind: StoreKind
  readonly folder: string
  /** Makes all that is there now safe from a power loss. */
  readonly settle: () => Promise<void>
  /** Removes it with all its files. The server must not run. */
  readonly remove: () => Promise<void>
}

export const plainStore = async (folder: string): Promise<Store> => {
  await mkdir(folder, { recursive: true })
  return {
    kind: "plain",
    folder,
    settle: async () => {},
    remove: () => rm(folder, { recursive: true, force: true, maxRetries: 10 })
  }
}

export const makeStore = (kind: StoreKind, folder: string): Promise<Store> => {
  if (kind === "forgetful") return ForgetfulStore.make(folder)
  if (kind === "small") return SmallStore.make(folder)
  return plainStore(folder)
}
