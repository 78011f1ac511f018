// Responses of a push service that wait for the test.
import type { UserAgent } from "./user-agent.ts"

/** Holds the responses to pushes to these browsers until `respond` is called. */
export const holdResponses = (agents: ReadonlyArray<UserAgent>) => {
  const waiting: Array<() => void> = []
  let isOpen = false
  for (const agent of agents)
    agent.answerBy((next) => {
      const { play, status } = next()
      const playLater: typeof play = (...both) =>
        isOpen ? play(...both) : void waiting.push(() => play(...both))
      return { status, play: playLater }
    })
  return {
    held: () => waiting.length,
    respondOnce: () => waiting.shift()?.(),
    respond: () => {
      isOpen = true
      for (const play of waiting.splice(0)) play()
    }
  }
}
