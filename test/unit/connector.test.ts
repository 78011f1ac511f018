// How many connections to one push service are opened at the same time.
import { assert, describe, it } from "vitest"
import { fewAtATime } from "#delivery/push/transport/connection.ts"

type Connect = Parameters<typeof fewAtATime>[0]
type Callback = Parameters<Connect>[1]

const to = { hostname: "localhost", protocol: "https:", port: "1" }
const socket = {} as never

const opening = () => {
  const under: Array<Callback> = []
  const ended: Array<unknown> = []
  const unreachable: Array<Error> = []
  const connect = fewAtATime(
    (_to, callback) => void under.push(callback),
    (error) => void unreachable.push(error)
  )
  for (let i = 0; i < 100; i++) connect(to, (...[error]) => void ended.push(error))
  return { under, ended, unreachable }
}
const refused = new Error("refused")

describe("connections to one push service", () => {
  it("are opened 8 at a time", () => {
    const { ended, under, unreachable } = opening()
    assert.lengthOf(under, 8)
    under[0]!(null, socket)
    assert.lengthOf(under, 9)
    for (let i = 1; i < 100; i++) under[i]!(null, socket)
    assert.deepEqual([under.length, ended.length, unreachable.length], [100, 100, 0])
  })

  it("wait on when some fail, and fail with 32 that fail in a row", () => {
    const { ended, under, unreachable } = opening()
    for (let i = 0; i < 31; i++) under[i]!(refused, null)
    under[31]!(null, socket)
    for (let i = 32; i < 63; i++) under[i]!(refused, null)
    assert.deepEqual([under.length, ended.length, unreachable.length], [71, 63, 0])
    under[63]!(refused, null)
    assert.deepEqual([under.length, ended.length, unreachable.length], [71, 93, 1])
  })

  it("are unreachable when the only one fails", () => {
    const unreachable: Array<Error> = []
    const connect = fewAtATime(
      (_to, callback) => callback(refused, null),
      (error) => void unreachable.push(error)
    )
    connect(to, () => {})
    assert.deepEqual(unreachable, [refused])
  })
})
