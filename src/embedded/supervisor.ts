// The process between us and nats-server: ends it when we end, however we end, and lets no Ctrl-C through to it.
import { spawn } from "node:child_process"
import { once } from "node:events"
import type { Folder } from "./folder.ts"
import { goEnvironment } from "./memory.ts"

/** sysexits' EX_TEMPFAIL: somebody else took the lock first. */
export const lockTaken = 75

/**
 * Our end of its standard input closes when we die, even by kill -9; `cat` then ends and nats-server is told to stop: TERM, and KILL
 * after 5 s. The address goes first: a lock without one means "about to be free". Its own end frees the lock and is reported with its
 * exit code. noclobber makes taking the lock atomic.
 */
const script = `
lock=$1 ports=$2 url=$3; shift 3
(set -C; echo $$ > "$lock") 2>/dev/null || exit ${lockTaken}
exec 3<&0
"$@" 3<&- </dev/null &
server=$!
(cat <&3; rm -f "$ports"/* "$url"; kill -TERM $server; sleep 5; kill -KILL $server) >/dev/null 2>&1 &
watch=$!
exec 3<&-
wait $server; code=$?
kill $watch 2>/dev/null
rm -f "$url" "$lock"
exit $code
`

export interface Supervisor {
  /** Resolves when nats-server has ended, with its exit code. */
  readonly exited: Promise<number>
  /** What was printed besides the log: faults in the configuration. */
  readonly printed: () => string
  readonly stop: () => Promise<void>
}

export const supervise = (binary: string, folder: Folder): Supervisor => {
  const args = [
    "-c",
    script,
    "bellcast-nats",
    folder.lock,
    folder.ports,
    folder.url,
    binary,
    "-c",
    folder.config
  ]
  // Detached: a session of its own, so that neither Ctrl-C nor a closed terminal reaches it before we have drained.
  const child = spawn("/bin/sh", args, {
    detached: true,
    stdio: ["pipe", "ignore", "pipe"],
    env: goEnvironment(process.env)
  })
  let printed = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    printed = (printed + text).slice(-2_000)
  })
  // It may end before we close its input.
  child.stdin.on("error", () => undefined)
  const exited = once(child, "exit").then(([code]) => (typeof code === "number" ? code : 128))
  return {
    exited,
    printed: () => printed,
    stop: async () => {
      child.stdin.end()
      await exited
    }
  }
}
