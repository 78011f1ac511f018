// The differences between two forms of a draft.
import type { Draft, DraftData } from "../api/shapes.ts"
import { contentOf, localesOf, writtenOf } from "./content.ts"

const members = [
  "name",
  "data",
  "data_by_locale",
  "to",
  "at",
  "rate",
  "pause_when",
  "ttl",
  "urgency",
  "topic",
  "test"
] as const satisfies ReadonlyArray<keyof DraftData>

/** The members that a person wrote, not the service. A delay belongs to the moment of sending. */
export const dataOf = (draft: Draft | DraftData): DraftData =>
  Object.fromEntries(
    members.flatMap((name) => (draft[name] === undefined ? [] : [[name, draft[name]]]))
  )

/** JSON with sorted keys: two values with the same text are the same. */
const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each
  ) ?? ""

export const isSame = (one: unknown, other: unknown): boolean => textOf(one) === textOf(other)

/** A member that differs: of a language, or of the whole draft. */
export interface Change {
  /** A member of a notification, or of the draft. */
  readonly name: string
  readonly locale: string | undefined
  readonly before: unknown
  readonly after: unknown
}

const changesIn = (
  before: object,
  after: object,
  names: ReadonlyArray<string>,
  locale?: string
): ReadonlyArray<Change> => {
  const [old, now] = [before, after] as ReadonlyArray<Readonly<Record<string, unknown>>>
  return names
    .filter((name) => !isSame(old![name], now![name]))
    .map((name) => ({ name, locale, before: old![name], after: now![name] }))
}

/** The differences, in the order in which the page shows them. */
export const changesOf = (before: DraftData, after: DraftData): ReadonlyArray<Change> => {
  const locales = [...new Set([...localesOf(before), ...localesOf(after)])]
  const ofContents = locales.flatMap((locale) => {
    const [old, now] = [before, after].map((each) => writtenOf(contentOf(each, locale)))
    const names = [...new Set([...Object.keys(old!), ...Object.keys(now!)])]
    return changesIn(old!, now!, names, locale)
  })
  const others = members.filter((name) => !name.startsWith("data"))
  return [...ofContents, ...changesIn(before, after, others)]
}
