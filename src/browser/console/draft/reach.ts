// How many people and browsers an audience has now, by a dry run. Dry runs are limited by the
// minute and by the size of what they read: at most one every 3 s, and none while the service says
// wait.
import { useEffect, useRef, useState } from "preact/hooks"
import { type Problem, request } from "../api/client.ts"
import type { Reach, To } from "../api/shapes.ts"
import { problemOf } from "../parts/report.ts"
import { hasAudience } from "./audience.ts"

/** While one types, nothing is asked. */
const debounceMillis = 500
const everyMillis = 3_000

export interface Counted {
  readonly reach: Reach
  readonly warnings: ReadonlyArray<string>
  /** By the clock of this machine. */
  readonly at: number
}

interface DryRun {
  readonly data: Reach
  readonly warnings: ReadonlyArray<string>
}

export const counted = ({ data, warnings }: DryRun): Counted => ({
  reach: data,
  warnings,
  at: Date.now()
})

const dryRun = async (to: To, signal: AbortSignal): Promise<Counted> => {
  const body = { dry_run: true, to }
  return counted((await request<DryRun>("broadcasts", { method: "POST", body, signal })).body)
}

export interface Counting {
  readonly counted: Counted | undefined
  readonly problem: Problem | undefined
  readonly isCounting: boolean
}

/** When a dry run may be sent next, for all audiences of this tab. */
let nextAt = 0

/** Counts the audience whenever it changes; the former count stays until the next one is there. */
export const useReach = (to: To | undefined): Counting & { readonly again: () => void } => {
  const [counting, show] = useState<Counting>({
    counted: undefined,
    problem: undefined,
    isCounting: false
  })
  const [round, next] = useState(0)
  const of = JSON.stringify(to ?? null)
  const latest = useRef(to)
  latest.current = to
  useEffect(() => {
    const wanted = latest.current
    if (wanted === undefined || !hasAudience({ to: wanted })) {
      show({ counted: undefined, problem: undefined, isCounting: false })
      return undefined
    }
    const abort = new AbortController()
    show((now) => ({ ...now, isCounting: true, problem: undefined }))
    const count = async () => {
      nextAt = Date.now() + everyMillis
      try {
        const found = await dryRun(wanted, abort.signal)
        show({ counted: found, problem: undefined, isCounting: false })
      } catch (cause) {
        if (abort.signal.aborted) return
        const problem = problemOf(cause)
        show({ counted: undefined, problem, isCounting: false })
        if (problem.status === 429) waitFor(problem.retryAfterMillis ?? 30_000)
      }
    }
    const waitFor = (millis: number) => {
      nextAt = Date.now() + millis
      timer = setTimeout(count, millis)
    }
    let timer = setTimeout(count, Math.max(debounceMillis, nextAt - Date.now()))
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [of, round])
  return { ...counting, again: () => next((now) => now + 1) }
}
