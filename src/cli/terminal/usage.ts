// Errors in a command line: two lines instead of a page of help.

import * as CliConfig from "effect/cli/CliConfig"
import * as CliOutput from "effect/cli/CliOutput"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Layer from "effect/Layer"
import { withoutSecrets } from "#telemetry/redaction.ts"
import { note } from "./note.ts"

/** Messages quote the command line, where an address of NATS may hold a password. */
const presenter: CliOutput.Presenter = {
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? note(
          [
            event.errors.map(({ message }) => withoutSecrets(message)).join("; "),
            `usage: ${event.helpDoc.usage} (--help tells more)`
          ].join("\n")
        )
      : CliOutput.defaultPresenter.present(event)
}

/** The presenter of errors, and the built-in flags that have a use here. */
export const usageLayer = Layer.merge(
  CliOutput.layerPresenter(presenter),
  CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version] })
)
