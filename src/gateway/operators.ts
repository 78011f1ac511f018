// Operators: those of the settings and of tokens, and the record of the people they look at.
import * as Effect from "effect/Effect"
import { Settings } from "#config"
import type { Caller } from "#identity/identity.ts"
import type { UserToken } from "#streams/tokens.ts"
import { type ApiResponse, Refused } from "./http/request.ts"

/** Whether a caller sees and stops the broadcasts of everybody. It gives no right to publish. */
export const isOperator = Effect.fnUntraced(function* ({ principals, rights }: Caller) {
  if (rights !== undefined) return rights.operator
  const { operatorPrincipals } = yield* Settings
  return principals.some((principal) => operatorPrincipals.includes(principal))
})

/** The request of an operator about a person: the log names both, also where it fails. */
export const about = <E, R>(
  person: UserToken,
  request: Effect.Effect<ApiResponse, E | Refused, R>
): Effect.Effect<ApiResponse, E | Refused, R> =>
  request.pipe(
    Effect.map((response) => ({ ...response, person })),
    Effect.mapError((error) =>
      error instanceof Refused ? new Refused({ response: { ...error.response, person } }) : error
    )
  )
