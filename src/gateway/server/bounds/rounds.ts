// Shares the event loop fairly among clients. Node.js hands over every request that arrived in one
// round of the event loop: 300 connections of one client would delay all other clients, and all
// timers of the process.

/** How long one round may start requests. A request takes 1 to 5 ms. */
const roundMillis = 20

/** Starts `job` in this round or a later one. Jobs of different accounts take turns. */
export type Begin = (account: string, job: () => void) => void

export const makeRounds = (): Begin => {
  /** The waiting jobs of each account, in the order of the accounts' turns. */
  const waiting = new Map<string, Array<() => void>>()
  let scheduled = false
  const takeTurn = (account: string, jobs: Array<() => void>) => {
    waiting.delete(account)
    const job = jobs.shift()
    if (jobs.length > 0) waiting.set(account, jobs)
    job?.()
  }
  const round = () => {
    const ends = performance.now() + roundMillis
    try {
      for (const [account, jobs] of waiting) {
        takeTurn(account, jobs)
        if (performance.now() > ends) break
      }
    } finally {
      scheduled = waiting.size > 0
      if (scheduled) setImmediate(round)
    }
  }
  return (account, job) => {
    const jobs = waiting.get(account)
    if (jobs === undefined) waiting.set(account, [job])
    else jobs.push(job)
    if (scheduled) return
    scheduled = true
    setImmediate(round)
  }
}
