// Operators: those of the settings and of tokens.
import * as Effect from "effect/Effect"
import { Settings } from "#config"
import type { Caller } from "#identity/identity.ts"

/** Whether a caller sees and stops the broadcasts of everybody. It gives no right to publish. */
export const isOperator = Effect.fnUntraced(function* ({ principals, rights }: Caller) {
  if (rights !== undefined) return rights.operator
  const { operatorPrincipals } = yield* Settings
  return principals.some((principal) => operatorPrincipals.includes(principal))
})
