// The service's logs hold no endpoint, key or password, no defect of its own, and nothing that is
// no line of the log: stderr of each process is in the same file.
import { readFileSync } from "node:fs"
import { endpointMark } from "../push/services.ts"
import { type Check, few, type Look } from "./check.ts"

/** Base64url runs as long as an auth secret or a public key. */
const secretLike = /(?<![\w-])(?:[\w-]{22}|[\w-]{87})(?![\w-])/g
const basicPassword = Buffer.from(":torture").toString("base64").slice(1, 8)

/** Where reading goes on, by file. */
const read = new Map<string, number>()

const newText = (file: string): string => {
  const bytes = readFileSync(file)
  const from = read.get(file) ?? 0
  // A process may be writing its last line now.
  const to = Math.max(from, bytes.lastIndexOf("\n") + 1)
  read.set(file, to)
  return bytes.subarray(from, to).toString()
}

const judge = (name: string, line: string, { push }: Look): string | undefined => {
  if (line.includes(endpointMark)) return `${name} logs an endpoint`
  if (line.includes(basicPassword)) return `${name} logs a password`
  for (const [text] of line.matchAll(secretLike))
    if (push.secrets.has(text)) return `${name} logs a subscription's key`
  if (/"level":"fatal"|uncaught|TypeError|RangeError/.test(line) && !/cannot start/.test(line))
    return `${name}: ${line.slice(0, 300)}`
  if (line !== "" && !line.startsWith("{")) return `${name} prints ${line.slice(0, 300)}`
  return undefined
}

export const logs: Check = {
  name: "logs hold no secret, no defect and nothing else",
  run: async (look) =>
    few(
      look.fleet.flatMap(({ logFile, name }) =>
        newText(logFile)
          .split("\n")
          .flatMap((line) => judge(name, line, look) ?? [])
      )
    )
}

/** What the rig noted while the load ran: wrong pushes, and responses that no fault explains. */
export const answers: Check = {
  name: "pushes and responses are right",
  run: async ({ model }) => few([...new Set(model.wrong.splice(0))])
}
