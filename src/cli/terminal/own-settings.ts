// Settings of the service, where a verb runs: those of its environment or settings file.
import * as Effect from "effect/Effect"
import * as Struct from "effect/Struct"
import { settings } from "#config"
import { everySetting, type Table } from "#settings/every-setting.ts"
import { failedBy } from "./output.ts"

/** The values of a table. Fails with every fault at once. */
export const valuesOf = <C extends Table>(table: C) =>
  Effect.mapError(everySetting(table), failedBy)

/** The values of these settings. */
export const ownSettings = <K extends keyof typeof settings>(...names: ReadonlyArray<K>) =>
  valuesOf(Struct.pick(settings, names))
