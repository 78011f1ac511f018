// The faults that a run can have: those of the service's processes, of push services, of streams and
// of NATS, less those that this machine lacks something for.

import type { RigClient } from "../nats/client.ts"
import type { Origin } from "../push/origin.ts"
import { allFaults } from "./all.ts"
import { consumerFaults } from "./consumers.ts"
import type { Fault, Nodes, StoreKind } from "./fault.ts"
import { fullStreamFaults } from "./full-streams.ts"
import { fullWorkFaults } from "./full-work.ts"
import { memberFaults } from "./members.ts"
import { pushServiceFaults } from "./push-services.ts"

export interface Available {
  readonly faults: ReadonlyArray<Fault>
  /** Names of faults that this machine cannot have, and why. */
  readonly missing: ReadonlyArray<string>
}

export const availableFaults = async (
  nodes: Nodes,
  isShort: boolean,
  client: () => RigClient,
  origins: ReadonlyArray<Origin>
): Promise<Available> => {
  const wanted = [
    ...allFaults,
    ...memberFaults,
    ...consumerFaults(client),
    ...fullStreamFaults(client),
    ...fullWorkFaults(client, origins),
    ...pushServiceFaults(origins)
  ].filter((fault) => fault.nodes.includes(nodes) && (!isShort || fault.short === true))
  const faults: Array<Fault> = []
  const missing: Array<string> = []
  for (const fault of wanted) {
    const why = await fault.unavailable?.()
    if (why === undefined) faults.push(fault)
    else missing.push(`${fault.name}: ${why}`)
  }
  return { faults, missing }
}

/** Kinds of storage that some fault needs; a cycle has one of them. */
export const storesOf = (faults: ReadonlyArray<Fault>): ReadonlyArray<StoreKind> => [
  "plain",
  ...new Set(faults.flatMap(({ store }) => store ?? []))
]
