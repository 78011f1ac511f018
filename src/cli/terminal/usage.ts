// How the command line tells what is wrong with it: in two lines, not below a page of help.
import { Layer } from "effect"
import { CliConfig, CliOutput, GlobalFlag } from "effect/cli"
import { withoutSecrets } from "#telemetry/redaction.ts"
import { note } from "./note.ts"

/** A message quotes what was typed. An address of NATS in the wrong place may hold a password. */
const presenter: CliOutput.Presenter = {
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? note(
          `${event.errors.map(({ message }) => withoutSecrets(message)).join("; ")}\nusage: ${event.helpDoc.usage} (--help tells more)`
        )
      : CliOutput.defaultPresenter.present(event)
}

/** Of the flags that come by themselves, those that mean something here. */
export const usageLayer = Layer.merge(
  CliOutput.layerPresenter(presenter),
  CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version] })
)
