// Problems that no screen shows beside what caused them: above the screen, the newest first.
import { Problem } from "../api/client.ts"
import { Store } from "../state/store.ts"

/** Anything thrown, as a Problem: an error of this page is one, too. */
export const problemOf = (cause: unknown): Problem => {
  if (cause instanceof Problem) return cause
  console.error(cause)
  return new Problem("bug", 0, cause instanceof Error ? cause.message : String(cause))
}

export const reported = new Store<ReadonlyArray<Problem>>([])
const reportedMax = 5

/** The same problem again replaces the former one. */
export const report = (cause: unknown): void => {
  if (Object(cause).name === "AbortError") return
  const problem = problemOf(cause)
  const others = reported.value.filter(
    ({ code, message }) => code !== problem.code || message !== problem.message
  )
  reported.set([problem, ...others].slice(0, reportedMax))
}
