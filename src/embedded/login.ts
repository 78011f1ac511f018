// The login of the embedded nats-server: one user, whose password is made once and never changes.
import { randomBytes } from "node:crypto"
import { readFile } from "node:fs/promises"
import { createOnce } from "#secrets/once.ts"

export const user = "bellcast"

/** 32 bytes, in base64url. */
const passwordForm = /^[A-Za-z0-9_-]{43}$/

/** The password in the file. Undefined: there is no file. */
export const passwordIn = async (file: string): Promise<string | undefined> => {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined
    throw error
  })
  if (text === undefined || passwordForm.test(text)) return text
  throw new Error(`${file} is damaged: remove it, and the next start makes another`)
}

/** The password in the file; made now if there is none. */
export const ensurePassword = async (file: string): Promise<string> => {
  const password = await passwordIn(file)
  if (password !== undefined) return password
  await createOnce(file, randomBytes(32).toString("base64url"))
  return (await passwordIn(file))!
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
