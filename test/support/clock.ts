// Gives a process of the service a wrong clock.
const preload = new URL("wrong-clock.ts", import.meta.url).href

/**
 * The environment of a process whose clock is `aheadMillis` ahead, and with each SIGUSR2
 * `stepMillis` more. Negative: behind.
 */
export const wrongClock = (aheadMillis: number, stepMillis = 0) => ({
  NODE_OPTIONS: `--import=${preload}`,
  TEST_CLOCK_AHEAD_MILLIS: String(aheadMillis),
  TEST_CLOCK_STEP_MILLIS: String(stepMillis)
})
