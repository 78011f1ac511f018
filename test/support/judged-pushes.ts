// Pushes as the state of a push service sees them, for unit tests of it.
import type { Push } from "#delivery/attempt.ts"

/** Makes pushes that are sent at `now`: each to the only subscription of a user, stored at 0. */
export const pushesAt =
  (now: number) =>
  (user: string, more: Partial<Push> = {}): Push => ({
    ...{ user, subscription: `${user}.id`, generation: 1, broadcast: 2, saidGone: false },
    ...{ acceptedAt: now, storedAt: 0, sentAt: now },
    ...more
  })
