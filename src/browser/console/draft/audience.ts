// To whom a notification goes: channels, users by their ids, and users who get none.
import type { DraftData, To } from "../api/shapes.ts"

/** Of one broadcast, as the service takes it. */
export const channelsMax = 100
export const usersMax = 1_000

export interface Names {
  readonly ids: ReadonlyArray<string>
  /** Lines that name nobody, with their numbers from 1. */
  readonly wrong: ReadonlyArray<{ readonly line: number; readonly text: string }>
}

/** One id a line, `policy:name`. Empty lines and repetitions are left out. */
export const namesIn = (text: string): Names => {
  const ids = new Set<string>()
  const wrong: Array<Names["wrong"][number]> = []
  for (const [index, each] of text.split("\n").entries()) {
    const id = each.trim()
    if (/^[a-z][a-z\d-]*:./.test(id)) ids.add(id)
    else if (id !== "") wrong.push({ line: index + 1, text: id })
  }
  return { ids: [...ids], wrong }
}

export const linesOf = (ids: ReadonlyArray<string> = []): string => ids.join("\n")

/** A name of a channel as the service takes it: any text of 1 to 255 bytes without a slash. */
export const isChannelName = (name: string): boolean => {
  const bytes = new TextEncoder().encode(name).length
  return bytes > 0 && bytes <= 255 && !name.includes("/")
}

const some = (ids: ReadonlyArray<string> | undefined) =>
  ids !== undefined && ids.length > 0 ? ids : undefined

/** The draft with another audience, without lists that are empty. */
export const withAudience = (draft: DraftData, change: Partial<To>): DraftData => {
  const { to: before, ...rest } = draft
  const { channels, except_users, users } = { ...before, ...change }
  const to = {
    ...(some(channels) && { channels: channels! }),
    ...(some(users) && { users: users! }),
    ...(some(except_users) && { except_users: except_users! })
  }
  return Object.keys(to).length === 0 ? rest : { ...rest, to }
}

/** The lists of users in a draft. */
export type UserList = "users" | "except_users"

/** Texts of lists of users that are not in the draft as they were typed. */
export type TypedLists = Readonly<Partial<Record<UserList, string>>>

/** The draft with the ids that were typed, and the texts with faults, which stay as they are. */
export const withTypedLists = (
  draft: DraftData,
  typed: TypedLists
): { readonly data: DraftData; readonly typed: TypedLists } => {
  const texts = Object.entries(typed) as ReadonlyArray<[UserList, string]>
  const ids = texts.map(([list, text]) => [list, namesIn(text).ids.slice(0, usersMax)])
  const wrong = texts.filter(([, text]) => isWrong(namesIn(text)))
  return {
    data: withAudience(draft, Object.fromEntries(ids)),
    typed: Object.fromEntries(wrong)
  }
}

const isWrong = ({ ids, wrong }: Names): boolean => wrong.length > 0 || ids.length > usersMax

/** Whether it names anybody: exceptions alone are no audience. */
export const hasAudience = ({ to }: DraftData): boolean =>
  (to?.channels ?? []).length + (to?.users ?? []).length > 0
