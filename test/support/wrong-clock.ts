// Preloaded into a process of the service: makes its Date wrong, as if somebody had set the clock
// of its machine. The monotonic clock and timers stay as they are, as they do then.

const own = Date.now.bind(Date)
let aheadMillis = Number(process.env["TEST_CLOCK_AHEAD_MILLIS"] ?? 0)

// From now on by so much more.
process.on("SIGUSR2", () => {
  aheadMillis += Number(process.env["TEST_CLOCK_STEP_MILLIS"] ?? 0)
})

Date.now = () => own() + aheadMillis
globalThis.Date = new Proxy(Date, {
  construct: (target, args) =>
    args.length === 0 ? new target(Date.now()) : Reflect.construct(target, args),
  apply: (target) => new target(Date.now()).toString()
})
