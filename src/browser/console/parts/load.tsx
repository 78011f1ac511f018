// A reading of a screen from the service: waiting, there, or an error, and read again when it is
// old.
import type { ComponentChildren } from "preact"
import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import type { Problem } from "../api/client.ts"
import { sessions } from "../api/session.ts"
import { ProblemBox } from "./problem.tsx"
import { problemOf } from "./report.ts"

export interface Loaded<T> {
  readonly data: T | undefined
  readonly problem: Problem | undefined
  readonly isLoading: boolean
  readonly reload: () => Promise<void>
  /** Shows a newer value that came by another way. */
  readonly replace: (data: T) => void
}

/** There is no such thing, or the caller may not see it. */
export const isMissing = ({ data, problem }: Pick<Loaded<unknown>, "data" | "problem">): boolean =>
  data === undefined && problem?.status === 404

/** Older than this, it is read again when the window is looked at. */
const oldAfterMillis = 60_000

/**
 * Reads at once, again when one of `of` changes, and while the window is looked at every
 * `everyMillis`. What was there stays beside an error.
 */
export const useLoad = <T,>(
  read: (signal: AbortSignal) => Promise<T>,
  of: ReadonlyArray<unknown>,
  everyMillis?: number
): Loaded<T> => {
  const [shown, show] = useState<Pick<Loaded<T>, "data" | "problem" | "isLoading">>({
    data: undefined,
    problem: undefined,
    isLoading: true
  })
  const current = useRef({ abort: new AbortController(), at: 0 })
  const hasFailed = useRef(false)
  hasFailed.current = shown.problem !== undefined
  const reload = useCallback(async () => {
    current.current.abort.abort()
    const abort = new AbortController()
    current.current = { abort, at: Date.now() }
    show((now) => ({ ...now, isLoading: true }))
    try {
      const data = await read(abort.signal)
      if (!abort.signal.aborted) show({ data, problem: undefined, isLoading: false })
    } catch (cause) {
      if (!abort.signal.aborted)
        show((now) => ({ ...now, problem: problemOf(cause), isLoading: false }))
    }
  }, of)
  useEffect(() => {
    show({ data: undefined, problem: undefined, isLoading: true })
    void reload()
    return () => current.current.abort.abort()
  }, [reload])
  useEffect(() => {
    const look = () => {
      if (document.hidden) return
      if (Date.now() - current.current.at > Math.min(everyMillis ?? Infinity, oldAfterMillis))
        void reload()
    }
    // After an error: the network is back, or somebody logged in again.
    const retry = () => {
      if (hasFailed.current && sessions.value.hasEnded !== true) void reload()
    }
    const end = sessions.listen(retry)
    addEventListener("online", retry)
    document.addEventListener("visibilitychange", look)
    const timer = everyMillis === undefined ? undefined : setInterval(look, everyMillis)
    return () => {
      end()
      removeEventListener("online", retry)
      document.removeEventListener("visibilitychange", look)
      clearInterval(timer)
    }
  }, [reload, everyMillis])
  const replace = useCallback((data: T) => show({ data, problem: undefined, isLoading: false }), [])
  return { ...shown, reload, replace }
}

/** The time now, which makes a component say it anew. */
export const useNow = (everyMillis = 1_000): number => {
  const [now, show] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => show(Date.now()), everyMillis)
    return () => clearInterval(timer)
  }, [everyMillis])
  return now
}

interface AwaitedProps<T> {
  readonly of: Loaded<T>
  readonly waiting: ComponentChildren
  readonly children: (data: T) => ComponentChildren
}

/** Shows the error, if there is one, above what was there before. */
export const Awaited = <T,>({ children, of, waiting }: AwaitedProps<T>) => (
  <>
    {of.problem && <ProblemBox problem={of.problem} onRetry={of.reload} />}
    {of.data !== undefined ? children(of.data) : of.isLoading && !of.problem && waiting}
  </>
)

/** Grey lines where rows will be. */
export const Ghosts = ({ rows = 4 }: { readonly rows?: number }) => (
  <div aria-hidden="true">
    {Array.from({ length: rows }, (_, index) => (
      <div key={index} class="ghost" />
    ))}
  </div>
)
