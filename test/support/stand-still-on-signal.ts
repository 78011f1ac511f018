// Preloaded into the service (`node --import`): a fault that keeps the event loop from going on.
import { isMainThread } from "node:worker_threads"

if (!isMainThread) throw new Error("preloaded into a thread that is not the service's own")
process.on("SIGUSR2", () => {
  // Without end, and without the CPU time of a loop, which tests beside it need.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
})
