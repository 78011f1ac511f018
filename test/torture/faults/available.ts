// The faults of a run: those of the service's processes, of push services, of streams and of NATS;
// and which of them this machine cannot have.

import type { RigClient } from "../nats/client.ts"
import type { Origin } from "../push/origin.ts"
import { allFaults } from "./all.ts"
import { consumerFaults } from "./consumers.ts"
import type { Fault, Nodes, StoreKind } from "./fault.ts"
import { fullStreamFaults } from "./full-streams.ts"
import { fullWorkFaults } from "./full-work.ts"
import { memberFaults } from "./members.ts"
import { pushServiceFaults } from "./push-services.ts"

/** All that make sense with so many servers, whether or not this machine can have them. */
export const faultsOf = (
  nodes: Nodes,
  isShort: boolean,
  client: () => RigClient,
  origins: ReadonlyArray<Origin>
): ReadonlyArray<Fault> =>
  [
    ...allFaults,
    ...memberFaults,
    ...consumerFaults(client),
    ...fullStreamFaults(client),
    ...fullWorkFaults(client, origins),
    ...pushServiceFaults(origins)
  ].filter((fault) => fault.nodes.includes(nodes) && (!isShort || fault.short === true))

/** Why this machine cannot have some of the faults. */
export const missingOf = async (
  faults: ReadonlyArray<Fault>
): Promise<ReadonlyMap<Fault, string>> => {
  const missing = new Map<Fault, string>()
  for (const fault of faults) {
    const why = await fault.unavailable?.()
    if (why !== undefined) missing.set(fault, why)
  }
  return missing
}

/** Kinds of storage that some fault needs; a cycle has one of them. */
export const storesOf = (faults: ReadonlyArray<Fault>): ReadonlyArray<StoreKind> => [
  "plain",
  ...new Set(faults.flatMap(({ store }) => store ?? []))
]
