// The login of the embedded nats-server: one user, whose password is made once and never changes.
import { randomBytes } from "node:crypto"
import { readFile } from "node:fs/promises"
import { createOnce } from "#secrets/once.ts"
import type { Folder } from "./folder.ts"

export const user = "bellcast"

/** 32 bytes, in base64url. */
const passwordForm = /^[A-Za-z0-9_-]{43}$/

/** The password in the folder. Undefined: there is none. */
export const passwordIn = async (folder: Folder): Promise<string | undefined> => {
  const text = await readFile(folder.password, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined
    throw error
  })
  if (text === undefined || passwordForm.test(text)) return text
  throw new Error(`${folder.password} is damaged: remove it, and the next start makes another`)
}

/** The password in the folder; made now if there is none. */
export const ensurePassword = async (folder: Folder): Promise<string> => {
  const password = await passwordIn(folder)
  if (password !== undefined) return password
  await createOnce(folder.password, randomBytes(32).toString("base64url"))
  return (await passwordIn(folder))!
}

/**
 * The part of nats.conf that demands the login. A bcrypt hash would hide nothing, as the service
 * and the command line need the password in a file beside it.
 */
export const authorizationOf = (password: string | undefined): string =>
  password === undefined ? "" : `authorization { user: "${user}", password: "${password}" }`

/** The address with the login in it. */
export const withLogin = (url: string, password: string | undefined): string =>
  password === undefined ? url : url.replace("://", `://${user}:${password}@`)
