// Starts hostile push services as one process (push-process.ts) and talks to it.
import { fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import type { HostileVerbs } from "./push-process.ts"

type Answer<Verb extends keyof HostileVerbs> = ReturnType<HostileVerbs[Verb]>

export interface SpawnedHostile extends AsyncDisposable {
  readonly pid: number
  readonly ask: <Verb extends keyof HostileVerbs>(
    verb: Verb,
    ...args: Parameters<HostileVerbs[Verb]>
  ) => Answer<Verb>
}

export const spawnHostile = (): SpawnedHostile => {
  const file = fileURLToPath(new URL("push-process.ts", import.meta.url))
  const child = fork(file, [], { execArgv: [] })
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()))
  const pending = new Map<number, (value: never) => void>()
  let lastId = 0
  child.on("message", ({ id, value }: { id: number; value: never }) => {
    pending.get(id)?.(value)
    pending.delete(id)
  })
  return {
    pid: child.pid!,
    ask: (verb, ...args) =>
      new Promise((resolve, reject) => {
        lastId += 1
        pending.set(lastId, resolve as never)
        child.send({ id: lastId, verb, args }, (error) => error && reject(error))
      }) as never,
    [Symbol.asyncDispose]: () => {
      child.kill("SIGKILL")
      return exited
    }
  }
}
