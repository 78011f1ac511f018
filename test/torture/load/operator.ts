// Changes that an operator makes by the published command.
import { setTimeout as sleep } from "node:timers/promises"
import { bellcast } from "../checks/cli.ts"

/**
 * Repeats a command, with arguments that are made anew, until it succeeds. Resolves with its
 * output.
 */
export type Operator = (argsOf: () => ReadonlyArray<string>) => Promise<string>

const pauseMillis = 1_000

export const makeOperator =
  (natsUrl: string): Operator =>
  async (argsOf) => {
    while (true) {
      const printed = await bellcast(natsUrl, ...argsOf()).catch(() => undefined)
      if (printed !== undefined) return printed
      await sleep(pauseMillis)
    }
  }
