// All faults that a schedule is made of.
import { clockFaults } from "./clock.ts"
import { diskFaults } from "./disk-faults.ts"
import type { Fault } from "./fault.ts"
import { natsFaults } from "./nats-faults.ts"
import { networkFaults } from "./network-faults.ts"

export const allFaults: ReadonlyArray<Fault> = [
  ...natsFaults,
  ...networkFaults,
  ...clockFaults,
  ...diskFaults
]
