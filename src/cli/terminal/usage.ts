// Errors in a command line: two lines instead of a page of help.
import { Layer } from "effect"
import { CliConfig, CliOutput, GlobalFlag } from "effect/cli"
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
