// Flags that several verbs have.
import * as Flag from "effect/cli/Flag"

/** A flag that is off unless it is given. */
export const onOff = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

/** For verbs that print one line of JSON for each row. */
export const jsonFlag = onOff("json", "Print JSON lines")
