// A shell process between Bellcast and nats-server. It stops nats-server when Bellcast ends, even
// by kill -9, and keeps Ctrl-C away from it.
import { spawn } from "node:child_process"
import { once } from "node:events"
import type { Folder } from "./folder.ts"
import { goEnvironment } from "./limits.ts"

/** Exit code when another process has the lock: EX_TEMPFAIL of sysexits. */
export const lockTaken = 75

/**
 * When Bellcast dies, its end of the script's standard input closes. `cat` then ends and
 * nats-server gets TERM, and KILL after 5 s. The address is removed first: a lock without an
 * address means "soon free". When nats-server ends, the lock is removed and its exit code passed
 * on. `set -C` (noclobber) makes taking the lock atomic.
 */
const script = `
lock=$1 ports=$2 url=$3; shift 3
(set -C; echo $$ > "$lock") 2>/dev/null || exit ${lockTaken}
exec 3<&0
"$@" 3<&- </dev/null &
server=$!
(
  cat <&3
  rm -f "$ports"/* "$url"
  kill -TERM $server
  sleep 5
  kill -KILL $server
) >/dev/null 2>&1 &
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
  /** The output of nats-server outside its log: errors in the configuration. */
  readonly printed: () => string
  readonly stop: () => Promise<void>
}

/** Starts nats-server under the supervisor. */
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
  // Detached: a session of its own, so that neither Ctrl-C nor a closed terminal ends nats-server
  // before Bellcast has drained.
  const child = spawn("/bin/sh", args, {
    detached: true,
    stdio: ["pipe", "ignore", "pipe"],
    env: goEnvironment(process.env)
  })
  let printed = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    printed = (printed + text).slice(-2_000)
  })
  // The child may end before its input is closed.
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
