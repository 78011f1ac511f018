// Hostile push services in a process of their own, so that their CPU time is not that of the test.
// Started by spawn-hostile.ts; each message is a request.
import { pushKinds } from "./push-kinds.ts"
import { type HostileOptions, startHostile } from "./push-server.ts"

type Running = Awaited<ReturnType<typeof startHostile>>
const running = new Map<string, Running>()
let burning: NodeJS.Immediate | undefined

const burn = () => {
  burning = setImmediate(burn)
}

const verbs = {
  /** Returns the origin. */
  start: async (name: string, options: HostileOptions) => {
    const started = await startHostile(pushKinds[name]!, options)
    running.set(name, started)
    return started.origin
  },
  counts: async (name: string) => running.get(name)!.counts(),
  stop: async (name: string) => {
    running.get(name)?.stop()
    running.delete(name)
  },
  /** Does nothing, with all of a core. */
  burn: async (on: boolean) => {
    if (burning !== undefined) clearImmediate(burning)
    burning = undefined
    if (on) burn()
  }
}

export type HostileVerbs = typeof verbs

interface Asked {
  readonly id: number
  readonly verb: keyof HostileVerbs
  readonly args: ReadonlyArray<never>
}

process.on("message", async ({ args, id, verb }: Asked) => {
  const run = verbs[verb] as (...args: ReadonlyArray<never>) => Promise<unknown>
  process.send?.({ id, value: await run(...args) })
})
process.once("disconnect", () => process.exit())
