// Bellcast's types of words.js.
import type { Push, PushErrorCode, PushState } from "./client.d.ts"

/** The meaning of each state for the person who looks, and the next step. */
export const states: Readonly<Record<PushState, string>>
/** The meaning of each error for that person. */
export const errors: Readonly<Record<PushErrorCode, string>>
/** The sentence that a page shows now: that the client is busy, the error, or the state. */
export function sentenceOf(push: Pick<Push, "busy" | "error" | "state">): string
