// `bellcast audit` shows of a broadcast what the rig reads in WORK.
import { isDirect } from "#streams/tokens.ts"
import { broadcastsOf, type Check, few } from "./check.ts"
import { bellcast } from "./cli.ts"

interface Row {
  readonly user: string
  readonly subscription: string
  readonly fate: string
}

export const audit: Check = {
  name: "audit is the truth",
  run: async (look) => {
    const markers = new Set(broadcastsOf(look).map(({ marker }) => marker))
    const mine = [...look.recorded.broadcasts.values()].filter(
      ({ marker }) => marker !== undefined && markers.has(marker)
    )
    if (mine.length === 0) return []
    const { channel, id, pushes } = look.random.pick(mine)
    const result = JSON.parse(await bellcast(look.natsUrl, "audit", String(id), "--json"))
    const rows: ReadonlyArray<Row> = result.pushes
    const violations: Array<string> = []
    if (result.channel !== (isDirect(channel) ? undefined : channel))
      violations.push(`audit ${id}: channel ${result.channel}`)
    if (rows.length !== pushes.size)
      violations.push(`audit ${id}: ${rows.length} pushes, not ${pushes.size}`)
    for (const { fate, subscription, user } of rows) {
      const recorded = pushes.get(`${user}.${subscription}`)?.last.fate
      if (recorded !== fate)
        violations.push(`audit ${id}: ${subscription.slice(0, 8)} is ${fate}, not ${recorded}`)
    }
    return few(violations)
  }
}
