// Verifying a JWT: nothing happens before it is asked for.
import { setImmediate } from "node:timers/promises"
import { Effect } from "effect"
import { expect, it } from "vitest"
import { verifyJwt } from "#identity/tokens/jwt.ts"

const key = Buffer.alloc(32, 1)

it("fails nowhere but where somebody waits for it: else the process would end", async () => {
  const unhandled: Array<unknown> = []
  const note = (error: unknown) => unhandled.push(error)
  process.on("unhandledRejection", note)
  const header = Buffer.from('{"alg":"HS256"}').toString("base64url")
  const verify = () => verifyJwt(`${header}.e30.AAAA`, key, ["HS256"], Date.now())
  // A fiber may rest, or be interrupted, before it runs the effect. When a later one has ended,
  // this one would have failed, too.
  const verified = verify()
  expect(await Effect.runPromise(verify())).toBe("the signature is wrong")
  await setImmediate()
  process.off("unhandledRejection", note)
  expect(unhandled).toEqual([])
  expect(await Effect.runPromise(verified)).toBe("the signature is wrong")
})
