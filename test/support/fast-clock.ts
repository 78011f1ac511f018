// A clock of a service by which waits of hours take seconds.
import { Clock, Duration } from "effect"

/** Waits of a minute and more are divided by this. */
const hourIn = 3_600
/** Shorter waits are those for leases, checkpoints and NATS, which keep their time. */
const longMillis = 60_000

/** An hour lasts a second. Times that are stored or compared with stored ones stay as they are. */
export const fastClock = (): Clock.Clock => {
  const clock = Clock.Clock.defaultValue()
  const sleep: Clock.Clock["sleep"] = (duration) => {
    const millis = Duration.toMillis(duration)
    return clock.sleep(millis < longMillis ? duration : Duration.millis(millis / hourIn))
  }
  return Object.assign(Object.create(clock) as Clock.Clock, { sleep })
}
