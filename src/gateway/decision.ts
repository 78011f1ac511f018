// The decision of a request on the current state: a response alone, or a command to store.
import type { RegistrationCommand } from "#domain/registration.ts"
import type { SubscriptionCommand } from "#domain/subscription/command.ts"
import type { ApiResponse } from "./http/request.ts"
import type { Growth } from "./quotas/room.ts"

export type Command = SubscriptionCommand | RegistrationCommand

/** A command to store and the response from the state after it. */
export interface Change<S, C> {
  readonly _tag: "Change"
  readonly command: C
  /** The streams that grow by the command, if not those of its kind. */
  readonly growth?: Growth
  /** Whether a subscription of another user moves to the caller. */
  readonly moves?: boolean
  /** Whom LOG names as the one who wants it. By default the caller, if it is another user. */
  readonly by?: string
  readonly response: (state: S) => ApiResponse
}

/** A response without a write, or a change. */
export type Decision<S, C> =
  | { readonly _tag: "Unchanged"; readonly response: ApiResponse }
  | Change<S, C>

/** A response without a write. */
export const unchanged = (response: ApiResponse) => ({ _tag: "Unchanged", response }) as const

/** A write. `response`: the same from every state, or made from the state after the command. */
export const changed = <const C extends Command, S = unknown>(
  command: C,
  response: ApiResponse | ((state: S) => ApiResponse),
  more: Pick<Change<S, C>, "growth" | "moves" | "by"> = {}
): Change<S, C> => ({
  _tag: "Change",
  command,
  response: typeof response === "function" ? response : () => response,
  ...more
})
