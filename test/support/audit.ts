// The audit of a broadcast, as `bellcast audit` has it, without a process of its own.
import { Effect } from "effect"
import { audit } from "#cli/audit.ts"
import { natsLayer } from "#nats/layer.ts"

/** The audits of these broadcasts, in their order. */
export const auditsOf = (natsUrl: string, broadcasts: ReadonlyArray<string>) =>
  Effect.forEach(broadcasts, (each) => audit(Number(each))).pipe(
    Effect.provide(natsLayer({ url: natsUrl, name: "test" })),
    Effect.runPromise
  )

/** What became of each push of a broadcast. */
export const pushesOf = async (natsUrl: string, broadcast: string) =>
  (await auditsOf(natsUrl, [broadcast]))[0]!.pushes
