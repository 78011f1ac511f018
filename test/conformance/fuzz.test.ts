// Sends random requests. FUZZ_REQUESTS: their number (default 1,200).
import { afterAll, beforeAll, describe, it } from "vitest"
import { sendAny } from "./fuzz.ts"
import { type Running, start } from "./target.ts"

const requests = Number(process.env["FUZZ_REQUESTS"] ?? 1_200)

describe("any request", () => {
  let running: Running
  beforeAll(async () => {
    running = await start(1)
  })
  afterAll(() => running[Symbol.asyncDispose]())

  it(
    `gets a described response (${requests} of them)`,
    {
      timeout: 60_000 + requests * 40
    },
    () => sendAny(running.target, requests)
  )
})
