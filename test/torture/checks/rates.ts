// No broadcast with a rate is sent faster than it.
import type { Broadcast } from "../model/model.ts"
import { broadcastsOf, type Check, few, type Look } from "./check.ts"

/** Section 4.4 of the contract: in no 10 s more than 5 % above the rate, or more than one push. */
const windowMillis = 10_000
const excess = 1.05
/**
 * Allowed to the times at which recorded attempts began. Processes know the time of NATS within
 * some 100 ms, a busy machine halts a process between the turn of a push and its attempt, and when
 * the bucket `cache` is deleted, the turns of 350 ms are given twice.
 */
const unevenMillis = 1_000
/**
 * Allowed to receipts. A push that has its turn waits for a connection for up to 10 s (`limitsOf`
 * in src/delivery/push/transport/exchange.ts), and then arrives together with later ones.
 */
const lateMillis = 10_000

/** The greatest number of times within 10 s. */
const mostOf = (times: ReadonlyArray<number>): number => {
  const sorted = [...times].sort((a, b) => a - b)
  let most = 0
  let first = 0
  for (const [last, time] of sorted.entries()) {
    while (time - sorted[first]! >= windowMillis) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}

const boundOf = (rate: number, allowedMillis: number): number =>
  Math.floor((rate * excess * (windowMillis + allowedMillis)) / 1_000) + 1

const judge = (
  { figures, model }: Look,
  { marker, terms }: Broadcast,
  id: number,
  attempts: ReadonlyArray<number>
): ReadonlyArray<string> => {
  const rate = Math.max(...terms.map((one) => one.rate ?? Number.POSITIVE_INFINITY))
  if (!Number.isFinite(rate)) return []
  const begun = mostOf(attempts)
  const received = mostOf(model.arrivals.get(marker) ?? [])
  const [begunMax, receivedMax] = [boundOf(rate, unevenMillis), boundOf(rate, lateMillis)]
  if (attempts.length > begunMax) figures.paced++
  figures.fastest = Math.max(figures.fastest, Math.round((begun / rate / windowMillis) * 100_000))
  const name = `broadcast ${id} of ${rate} pushes a second`
  return [
    ...(begun > begunMax ? [`${name}: ${begun} attempts in 10 s, bound ${begunMax}`] : []),
    ...(received > receivedMax
      ? [`${name}: ${received} receipts in 10 s, bound ${receivedMax}`]
      : [])
  ]
}

/**
 * Retries count like first attempts, and so does a push that is sent again after a kill: each waits
 * for a turn of its own.
 */
export const rates: Check = {
  name: "no broadcast is faster than its rate",
  run: async (look) => {
    const recorded = new Map([...look.recorded.broadcasts.values()].map((one) => [one.marker, one]))
    const violations = broadcastsOf(look).flatMap((broadcast) => {
      const { attempts, id } = recorded.get(broadcast.marker) ?? {}
      return id === undefined ? [] : judge(look, broadcast, id, attempts!)
    })
    return few(violations)
  }
}
