// Lookups of names for sockets. Each occupies one of two threads of the process until the resolver
// gives up, long after the connection that wanted it: so lookups of one name at a time are one.
import { type LookupAddress, lookup } from "node:dns"

export type Resolved = (
  error: NodeJS.ErrnoException | null,
  addresses: Array<LookupAddress>
) => void

/** Finds all addresses of a name. */
export type Resolve = (hostname: string, options: { all: true }, callback: Resolved) => void

/** Joins lookups of a name that is being looked up already. */
export const sharing = (resolve: Resolve): Resolve => {
  const waiting = new Map<string, Array<Resolved>>()
  return (hostname, options, callback) => {
    const others = waiting.get(hostname)
    if (others !== undefined) {
      others.push(callback)
      return
    }
    const callbacks = [callback]
    waiting.set(hostname, callbacks)
    resolve(hostname, options, (error, addresses = []) => {
      waiting.delete(hostname)
      for (const each of callbacks) each(error, [...addresses])
    })
  }
}

/** All lookups of the process that go through here. */
export const sharedLookup: Resolve = sharing((hostname, options, callback) =>
  lookup(hostname, options, callback)
)
