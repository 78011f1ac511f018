// Opens connections to one push service, few at the same time: a TLS handshake takes about 1 ms of
// the CPU, and all of those under way take it at once.
import type { buildConnector } from "undici"

type Connector = buildConnector.connector
type Arguments = Parameters<Connector>

/**
 * At 60 ms, 8 handshakes at a time are about 66 a second. HTTP/2 needs 16 connections. With 32, 512
 * of HTTP/1.1 at once delayed the pushes of others by 260 ms (p99).
 */
const openingMax = 8
/** So many failures in a row say that the push service cannot be reached. */
const failuresMax = 32

/**
 * `connect`: what opens one. `unreachable` is called when the only one under way fails, or 32 in a
 * row; those that wait for their turn fail then.
 */
export const fewAtATime = (
  connect: Connector,
  unreachable: (error: Error) => void = () => {}
): Connector => {
  let opening = 0
  let failedInRow = 0
  const waiting: Array<Arguments> = []
  const failed = (error: Error) => {
    failedInRow += 1
    const isLast = opening === 0 && waiting.length === 0
    if (!isLast && failedInRow < failuresMax) return
    for (const [, callback] of waiting.splice(0)) callback(error, null)
    unreachable(error)
  }
  const open = (...[to, callback]: Arguments): void => {
    opening += 1
    connect(to, (...result) => {
      opening -= 1
      callback(...result)
      if (result[0] === null) failedInRow = 0
      else failed(result[0])
      const next = waiting.shift()
      if (next !== undefined) open(...next)
    })
  }
  return (...each) => {
    if (opening < openingMax) open(...each)
    else waiting.push(each)
  }
}
