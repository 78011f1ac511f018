// The account whose connections are reset when unread responses fill the memory.
import { Socket } from "node:net"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { UnreadResponses } from "#gateway/server/send.ts"

const mebibyte = 1024 ** 2

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it("the account that a new response makes the largest is reset, and no other", () => {
  const reset = vi.fn()
  const unread = new UnreadResponses(reset)
  const add = (account: string, mebibytes: number) => {
    const socket = new Socket().on("error", () => undefined)
    const isAdded = unread.add(socket, account, mebibytes * mebibyte)
    return { socket, isAdded }
  }
  const others = ["b", "c", "d", "e"].map((account) => add(account, account === "b" ? 13 : 12))
  const own = [add("a", 4), add("a", 8)]
  vi.advanceTimersByTime(1_000)
  expect(add("a", 4).isAdded).toBe(true)
  expect(reset).toHaveBeenCalledOnce()
  expect(own.map(({ socket }) => socket.destroyed)).toEqual([true, false])
  expect(others.some(({ socket }) => socket.destroyed)).toBe(false)
  unread.stop()
})
