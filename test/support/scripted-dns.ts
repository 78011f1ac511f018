// A DNS resolver that fails on command. A service under test imports this file first (see
// `scriptedDns`). For `localhost` it then resolves to the content of a file: an address, or an
// error (ENOTFOUND, EAI_AGAIN). An empty file means the true address.
import dns from "node:dns"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const file = process.env["SCRIPTED_DNS"]

if (file !== undefined) {
  const real = dns.lookup as (...args: ReadonlyArray<unknown>) => void
  const scripted = (
    hostname: string,
    options: unknown,
    callback: (error: Error | null, addresses: unknown) => void
  ) => {
    const answer = hostname === "localhost" ? readFileSync(file, "utf8") : ""
    if (answer === "") return real(hostname, options, callback)
    if (!answer.startsWith("E")) return callback(null, [{ address: answer, family: 4 }])
    return callback(
      Object.assign(new Error(`getaddrinfo ${answer} ${hostname}`), { code: answer }),
      []
    )
  }
  Object.assign(dns, { lookup: scripted })
  syncBuiltinESMExports()
}

/**
 * The environment of a service whose resolver `say` controls. An open connection needs no
 * resolver: close it first.
 */
export const scriptedDns = () => {
  const folder = mkdtempSync(join(tmpdir(), "bellcast-dns-"))
  const path = join(folder, "answer")
  const say = (
    answer: "" | "ENOTFOUND" | "EAI_AGAIN" | `${number}.${number}.${number}.${number}`
  ) => writeFileSync(path, answer)
  say("")
  return {
    say,
    env: { SCRIPTED_DNS: path, NODE_OPTIONS: `--import=${fileURLToPath(import.meta.url)}` },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true })
  }
}
