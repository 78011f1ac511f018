// A scheduled broadcast that is changed in place: what may change, what was typed, and how it is
// saved over the form that it was typed on and no other. A copy of what is not saved stays in this
// tab, so neither a login that ends, a reload nor another screen loses it.
import { changeBroadcast, demandScheduled } from "../api/broadcasts.ts"
import { etagOf } from "../api/client.ts"
import { session } from "../api/session.ts"
import type { DraftData, WholeBroadcast } from "../api/shapes.ts"
import { problemOf } from "../parts/report.ts"
import { isSame } from "./changes.ts"

export type Edited = Pick<DraftData, "data" | "data_by_locale" | "at" | "rate">

export const editedOf = ({ at, data, data_by_locale, rate }: WholeBroadcast): Edited => ({
  ...(data && { data }),
  ...(data_by_locale && { data_by_locale }),
  ...(at && { at }),
  ...(rate && { rate })
})

/** The text that was typed, and the form that it was typed on. */
export interface TypedEdit {
  readonly before: Edited
  readonly data: DraftData
}

export const typedOn = (whole: WholeBroadcast): TypedEdit => {
  const before = editedOf(whole)
  return { before, data: before }
}

/** The members that differ. What it says is replaced as a whole. */
const changedIn = ({ before, data: { at, data, data_by_locale, rate } }: TypedEdit): Edited => ({
  ...((!isSame(before.data, data) || !isSame(before.data_by_locale, data_by_locale)) && {
    ...(data && { data }),
    ...(data_by_locale && { data_by_locale })
  }),
  ...(at !== undefined && before.at !== at && { at }),
  ...(rate !== undefined && before.rate !== rate && { rate })
})

export const isChanged = (typed: TypedEdit): boolean => Object.keys(changedIn(typed)).length > 0

const placeOf = (id: string): string => `bellcast-console-edited ${session().user} ${id}`

/** The copy of what was typed here before and is not saved. */
export const keptTyped = (id: string): TypedEdit | undefined => {
  try {
    return JSON.parse(sessionStorage.getItem(placeOf(id)) ?? "") as TypedEdit
  } catch {
    return undefined
  }
}

export const keepTyped = (id: string, typed: TypedEdit): void => {
  if (isChanged(typed)) sessionStorage.setItem(placeOf(id), JSON.stringify(typed))
  else forgetTyped(id)
}

export const forgetTyped = (id: string): void => sessionStorage.removeItem(placeOf(id))

/** A draft of the broadcast, with what was typed. */
export const withTypedEdit = (draft: DraftData, typed: TypedEdit): DraftData => {
  const changed = changedIn(typed)
  const { data, data_by_locale, ...rest } = draft
  const saysOther = (changed.data ?? changed.data_by_locale) !== undefined
  return { ...(saysOther ? rest : draft), ...changed }
}

/** Other changes of a broadcast, such as that of its state, may come between two of these. */
const savesMax = 3

/** Saves what was typed over a form. Returns that of somebody else that is stored instead. */
export const save = async (
  whole: WholeBroadcast,
  data: DraftData
): Promise<WholeBroadcast | undefined> => {
  let over = whole
  for (let count = 1; ; count += 1) {
    const typed = { before: editedOf(over), data }
    // Also where it was saved before, and the response was lost.
    if (!isChanged(typed)) return undefined
    try {
      await changeBroadcast(whole.id, changedIn(typed), etagOf(over))
      return undefined
    } catch (cause) {
      if (problemOf(cause).code !== "modified-meanwhile" || count === savesMax) throw cause
      over = await demandScheduled(whole.id)
      if (!isSame(editedOf(over), typed.before) && isChanged({ before: editedOf(over), data }))
        return over
    }
  }
}
