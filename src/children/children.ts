// The children of this process: they begin when it is too busy for the pushes that it has to send,
// and end five minutes after they were needed last. One that dies is started again. After five
// deaths in a row this process delivers alone, and begins none for ten minutes. At a stop all drain
// together.
import { randomUUID } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { monotonicMillis, nextMultiple } from "#clock/clocks.ts"
import { countDeath, showProcesses } from "#telemetry/delivery-metrics.ts"
import { LogLines } from "#telemetry/logger.ts"
import { combinedSeries, countedBy, type Series } from "#telemetry/whole-metrics.ts"
import { Child, type Ended } from "./child.ts"
import { type GroupShape, partOfParent, type TokenRequest, type TokenResponse } from "./group.ts"
import { makeActivity } from "./messages.ts"
import { againMillis, deathsMax, Load, restMillis } from "./processes.ts"

/** Between two looks at how busy the processes are. */
const lookMillis = 1_000

export interface Children {
  /** The bounds and tokens that this process shares with them. */
  readonly group: GroupShape
  /** Begins and ends them until the scope closes, and waits for their ends then. */
  readonly supervised: Effect.Effect<void, never, Scope.Scope>
  /** Tells those that run to drain, and begins none any more. */
  readonly told: Effect.Effect<void>
}

interface ChildrenOptions {
  /** All processes that deliver, this one included. */
  readonly processes: number
  /** The settings of a child. */
  readonly settings: Readonly<Record<string, string>>
  /** The file that a child runs. Default: that of this process. */
  readonly program?: string
  /** Whether this process was told to stop: it serves on for a while, and drains then. */
  readonly isStopRequested: () => boolean
}

/** All that is known of the children of this process. */
interface State extends Required<ChildrenOptions> {
  /** Names this process and its children among those of other machines. */
  readonly group: string
  /** By the number of the child. */
  readonly running: Map<number, Child>
  /** The fibers that keep children running; none: this process delivers alone. */
  keepers: ReadonlyArray<Fiber.Fiber<never>>
  /** Each makes this process keep to its part of a bound. */
  readonly bounds: Array<Effect.Effect<void>>
  /** Among how many processes bounds are divided. */
  divided: number
  /** The counts of children that ended. */
  counted: ReadonlyArray<Series>
  answer: (request: TokenRequest) => Effect.Effect<TokenResponse>
  isTold: boolean
  /** When a child had died too often, by the monotonic clock; undefined: not since they began. */
  failedAt: number | undefined
}

/** Makes the children of this process. */
export const makeChildren = ({
  program = process.argv[1] ?? "",
  ...options
}: ChildrenOptions): Children => {
  const state: State = {
    ...options,
    program,
    group: randomUUID(),
    running: new Map(),
    keepers: [],
    bounds: [],
    divided: 1,
    counted: [],
    answer: () => Effect.succeed("none"),
    isTold: false,
    failedAt: undefined
  }
  return { supervised: supervise(state), told: tell(state), group: groupOf(state) }
}

const groupOf = (state: State): GroupShape => ({
  part: (whole) => (state.divided === 1 ? whole : partOfParent(whole, state.divided)),
  processes: () => state.divided,
  name: () => (state.divided === 1 ? undefined : state.group),
  divide: (apply) => {
    state.bounds.push(apply)
    return apply
  },
  askToken: undefined,
  answerTokens: (answer) => {
    state.answer = answer
  },
  reports: () => [state.counted, ...[...state.running.values()].map(({ series }) => series)]
})

/**
 * A signal to the whole group of processes (Ctrl-C, `systemctl stop`) ends the children, too,
 * before this process drains. Such an end is no death.
 */
const isStopping = ({ isStopRequested, isTold }: State): boolean => isTold || isStopRequested()

/** Looks once a second at how busy the processes are. */
const supervise = Effect.fnUntraced(function* (state: State) {
  const scope = yield* Effect.scope
  const load = new Load()
  const activityOf = makeActivity()
  const look = Effect.gen(function* () {
    const own = activityOf()
    const now = yield* monotonicMillis
    if (isStopping(state)) return
    const all = [own, ...[...state.running.values()].map((child) => child.takeActivity())]
    if (state.keepers.length > 0) {
      if (state.failedAt !== undefined || load.ends(all, now)) yield* end(state)
    } else if (now - (state.failedAt ?? Number.NEGATIVE_INFINITY) >= restMillis)
      if (load.begins(own, now)) yield* begin(state, scope)
  })
  yield* Effect.addFinalizer(() => tell(state))
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(nextMultiple(lookMillis), look)))
})

/** Tells all that run to drain. */
const tell = (state: State) =>
  Effect.sync(() => {
    state.isTold = true
    for (const child of state.running.values()) child.tell()
  })

/** Divides the bounds, waits until this process keeps to its part, and begins the children. */
const begin = Effect.fnUntraced(function* (state: State, scope: Scope.Scope) {
  const { processes } = state
  state.failedAt = undefined
  yield* Effect.logInfo("many pushes wait: more processes deliver", { processes })
  yield* divide(state, processes)
  const numbers = Array.from({ length: processes - 1 }, (_, i) => i + 2)
  state.keepers = yield* Effect.forEach(numbers, (each) => Effect.forkIn(keep(state, each), scope))
})

const end = Effect.fnUntraced(function* (state: State) {
  yield* Effect.logInfo("this process delivers alone")
  yield* Fiber.interruptAll(state.keepers)
  state.keepers = []
  yield* divide(state, 1)
})

const divide = (state: State, among: number) =>
  Effect.suspend(() => {
    state.divided = among
    return Effect.forEach(state.bounds, (each) => each, { concurrency: 8, discard: true })
  })

/** Runs one child after the other with a number, until it is interrupted. */
const keep = Effect.fnUntraced(function* (state: State, number: number) {
  let deaths = 0
  while (!isStopping(state)) {
    const beganAt = yield* monotonicMillis
    const ended = yield* Effect.acquireUseRelease(
      start(state, number),
      (child) => Effect.promise(() => child.ended),
      (child) => stop(state, number, child)
    ).pipe(Effect.catchDefect((defect) => Effect.succeed<Ended>({ reason: String(defect) })))
    if (isStopping(state)) break
    deaths = (yield* monotonicMillis) - beganAt < restMillis ? deaths + 1 : 1
    countDeath({}, 1)
    yield* logDeath(number, ended, deaths)
    if (deaths >= deathsMax) {
      state.failedAt = yield* monotonicMillis
      break
    }
    yield* Effect.sleep(againMillis(deaths))
  }
  return yield* Effect.never
})

const start = Effect.fnUntraced(function* (state: State, number: number) {
  const { group, processes, program, running, settings } = state
  const { write } = yield* LogLines
  const run = Effect.runPromiseWith(yield* Effect.context<never>())
  const answer = (request: TokenRequest) => run(state.answer(request))
  const place = { number, processes, group }
  const child = new Child({ place, program, settings, writeLine: write, answer })
  running.set(number, child)
  showProcesses({}, 1 + running.size)
  return child
})

/** Drains a child, if it still runs, and keeps what it has counted. */
const stop = (state: State, number: number, child: Child) =>
  Effect.promise(async () => {
    await child.stop()
    state.running.delete(number)
    state.counted = combinedSeries([state.counted, countedBy(child.series)])
    showProcesses({}, 1 + state.running.size)
  })

const logDeath = (number: number, ended: Ended, deaths: number) => {
  const fields = { process: `delivery-${number}`, ...ended }
  return deaths < deathsMax
    ? Effect.logWarning("a process that delivers ended, and is started again", fields)
    : Effect.logError(
        `a process that delivers ended ${deaths} times in a row: this one delivers alone for ten ` +
          "minutes or more. Its last lines in the log may say why",
        fields
      )
}
