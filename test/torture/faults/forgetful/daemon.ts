// The process behind one forgetful file system: forked by forgetful-fs.ts, which sends it commands.
// A process of its own, because a program that waits for its own file system waits for ever.
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, openSync, read, writeSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { promisify } from "node:util"
import { seeded } from "../../random.ts"
import { Operations } from "./operations.ts"
import { parse, requestBytesMax, response } from "./protocol.ts"
import { type Strictness, Tree } from "./tree.ts"

export type Command =
  | { readonly do: "mount" }
  | { readonly do: "unmount" }
  | { readonly do: "settle" }
  /** While it is not mounted. With a seed, a part of what was not synced is kept. */
  | { readonly do: "lose power"; readonly seed: string | undefined }

const run = promisify(execFile)
const [folder, strictness] = process.argv.slice(2) as [string, Strictness]
const tree = new Tree(strictness)

/** Requests that are read at once: the kernel may send one while another is answered. */
const readers = 2

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? ""

/** ENOENT: the program that asked was killed meanwhile. */
const reply = (device: number, message: Buffer): void => {
  try {
    writeSync(device, message)
  } catch (error) {
    if (!["ENOENT", "ENODEV"].includes(codeOf(error))) throw error
  }
}

const readDevice = promisify(read) as (
  ...args: [number, Buffer, number, number, null]
) => Promise<{ readonly bytesRead: number }>

/** The length of the next request. Undefined: it is unmounted. */
const nextRequest = async (device: number, buffer: Buffer): Promise<number | undefined> => {
  while (true) {
    try {
      return (await readDevice(device, buffer, 0, buffer.length, null)).bytesRead
    } catch (error) {
      if (codeOf(error) === "ENODEV") return undefined
      // EPERM: not mounted yet. EINTR, EAGAIN, ENOENT: a request was withdrawn.
      if (!["EPERM", "EINTR", "EAGAIN", "ENOENT"].includes(codeOf(error))) throw error
      if (codeOf(error) === "EPERM") await sleep(1)
    }
  }
}

/** Resolves when the file system is unmounted. */
const serve = async (device: number): Promise<void> => {
  const operations = new Operations(tree)
  const reader = async () => {
    const buffer = Buffer.alloc(requestBytesMax)
    while (true) {
      const length = await nextRequest(device, buffer)
      if (length === undefined) return
      const request = parse(buffer.subarray(0, length))
      const result = operations.run(request)
      if (result !== undefined) reply(device, response(request.unique, result))
    }
  }
  await Promise.all(Array.from({ length: readers }, reader))
  closeSync(device)
}

let served: Promise<void> = Promise.resolve()

const mount = async () => {
  const device = openSync("/dev/fuse", "r+")
  const options = "fd=3,rootmode=40000,user_id=0,group_id=0,allow_other"
  const child = spawn("mount", ["-i", "-t", "fuse", "-o", options, "forgetful", folder], {
    stdio: ["ignore", "ignore", "inherit", device]
  })
  served = serve(device)
  const [code] = await once(child, "exit")
  if (code !== 0) throw new Error(`mount ended with ${code}`)
}

const unmount = async () => {
  await run("umount", [folder])
  await served
}

const perform = (command: Command): Promise<void> => {
  if (command.do === "mount") return mount()
  if (command.do === "unmount") return unmount()
  if (command.do === "settle") {
    tree.settle()
    return Promise.resolve()
  }
  tree.losePower(command.seed === undefined ? undefined : seeded(command.seed))
  return Promise.resolve()
}

process.on("message", (command: Command) => {
  perform(command).then(
    () => process.send!({ error: undefined }),
    (error: unknown) => process.send!({ error: String(error) })
  )
})

// The parent has ended: leave no mount behind. SIGKILL, as reads of the device would delay an exit.
process.once("disconnect", () => {
  void run("umount", ["-l", folder])
    .catch(() => {})
    .then(() => process.kill(process.pid, "SIGKILL"))
})
