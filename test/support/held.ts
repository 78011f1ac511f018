// Responses of a push service that wait for the test.
import type { Answer } from "./push-script.ts"
import type { UserAgent } from "./user-agent.ts"

/** Holds the responses to pushes to these browsers until the function that it returns is called. */
export const holdResponses = (agents: ReadonlyArray<UserAgent>): (() => void) => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  for (const agent of agents) {
    const next = agent.nextAnswer
    const nextAnswer = (): Answer => {
      const { play, status } = next()
      return { status, play: (...both) => void released.then(() => play(...both)) }
    }
    Object.assign(agent, { nextAnswer })
  }
  return release
}
