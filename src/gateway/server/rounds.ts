// Shares the event loop among clients. Node hands over every request that has arrived in one round
// of the loop: 300 connections of one client would keep all others, and the timers of the whole
// process, waiting until their requests are answered.

/** How long requests are begun in one round. A request takes 1 to 5 ms. */
const roundMillis = 20

/** Begins `job` in this round or a later one; jobs of different accounts take turns. */
export type Begin = (account: string, job: () => void) => void

export const makeRounds = (): Begin => {
  /** Accounts whose requests wait, in the order of their turns. */
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
