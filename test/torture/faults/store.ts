// What a nats-server keeps its files on. Every kind is a folder that appears empty and can be
// removed whatever state the server left it in.
import { mkdir, rm } from "node:fs/promises"
import type { StoreKind } from "./fault.ts"

export interface Store {
  readonly kind: StoreKind
  readonly folder: string
  /** Removes it with all its files. The server must not run. */
  readonly remove: () => Promise<void>
}

export const plainStore = async (folder: string): Promise<Store> => {
  await mkdir(folder, { recursive: true })
  return {
    kind: "plain",
    folder,
    remove: () => rm(folder, { recursive: true, force: true, maxRetries: 10 })
  }
}

export const makeStore = (kind: StoreKind, folder: string): Promise<Store> => {
  if (kind === "plain") return plainStore(folder)
  return Promise.reject(new Error(`no store of the kind ${kind} yet`))
}
