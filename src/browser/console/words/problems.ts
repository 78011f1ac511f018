// Errors of the API in words: what is wrong, and what to do.
import type { Problem } from "../api/client.ts"
import { duration, t, tIf } from "./language.ts"

export interface Said {
  readonly wrong: string
  readonly todo: string
}

/** A member of a request that the service refused, with its reason as the service says it. */
export interface WrongMember {
  readonly name: string
  readonly description: string
}

export const wrongMembers = ({ details }: Problem): ReadonlyArray<WrongMember> => {
  if (!Array.isArray(details)) return []
  return details.flatMap((each: Partial<WrongMember>) =>
    each.description === undefined ? [] : [{ name: each.name ?? "", description: each.description }]
  )
}

const byStatus = (status: number): "busy" | "forbidden" | "refused" | "broken" => {
  if (status === 429 || status === 503) return "busy"
  if (status === 401 || status === 403) return "forbidden"
  return status >= 500 ? "broken" : "refused"
}

/** A code without words of its own has those of its status. */
export const said = (problem: Problem): Said => {
  const { code, message, retryAfterMillis, status } = problem
  const kind = byStatus(status)
  const values = {
    message,
    wait: duration(retryAfterMillis ?? 30_000),
    state: tIf(`state-${(Object(problem.details) as { state?: string }).state}`) ?? message
  }
  return {
    wrong: tIf(`wrong-${code}`, values) ?? tIf(`wrong-${kind}`, values) ?? message,
    todo: tIf(`todo-${code}`, values) ?? t(`todo-${kind}`, values as never)
  }
}
