// A child of a process that delivers: it reports that it has nothing to do, and nothing else.
import { setInterval as every } from "node:timers"
import type { FromChild } from "#children/messages.ts"

const report: FromChild = { kind: "report", series: [], activity: { busy: 0, attempts: 0 } }
every(() => process.send?.(report), 1_000)
process.once("disconnect", () => process.exit())
