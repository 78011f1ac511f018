// The incidents: the cause of each alert. Those of a round happen at the same time; each round
// begins when nothing rings.
import {
  answering,
  type Cause,
  clockWrong,
  cutOff,
  deletedConsumer,
  disksFull,
  filled,
  foughtConsumer,
  garbage,
  killed,
  laterMessage,
  memoryShort,
  outOfMemory,
  providerAway,
  refusedBesideRestarts,
  serverErrors,
  serversLost,
  slowPushes,
  tokenEnds
} from "./causes.ts"
import { labelOf } from "./rig.ts"

export interface Incident {
  /** What happened, in words. */
  readonly name: string
  readonly alert: string
  /** The labels by which the alert names the cause. */
  readonly labels?: Readonly<Record<string, string>>
  /** Words by which the alert names the cause. */
  readonly says?: RegExp
  /** Other alerts that say the same of the same cause. None of them may be a page. */
  readonly beside?: ReadonlyArray<string>
  readonly cause: Cause
  /** For so long it lasts after the alert has fired, and the alert must ring on. */
  readonly heldMillis?: number
}

const alone: ReadonlyArray<Incident> = [
  {
    name: "a token ends in an hour",
    alert: "BellcastTokenExpires",
    labels: { token: "shop" },
    cause: tokenEnds
  },
  { name: "a clock is a minute ahead", alert: "BellcastClockWrong", cause: clockWrong },
  { name: "a process has little memory left", alert: "BellcastMemoryShort", cause: memoryShort },
  { name: "a process is cut off from NATS", alert: "BellcastCutOff", cause: cutOff },
  {
    name: "a publisher of NATS sends garbage",
    alert: "BellcastCommandsRejected",
    labels: { stage: "planner" },
    cause: garbage
  },
  {
    name: "a message is of a later version",
    alert: "BellcastVersionTooOld",
    labels: { message: "plan" },
    cause: laterMessage
  },
  {
    name: "a consumer is deleted",
    alert: "BellcastConsumerTampered",
    labels: { consumer: "limited" },
    cause: deletedConsumer
  },
  {
    name: "a bucket is 75 % full",
    alert: "BellcastStreamFillsUp",
    labels: { stream: "KV_bellcast_permissions" },
    cause: filled("KV_bellcast_permissions", 0.75)
  }
]

/** The rounds, in order. */
export const rounds: ReadonlyArray<ReadonlyArray<Incident>> = [
  [
    {
      name: "all workers are stopped",
      alert: "BellcastRoleAbsent",
      says: /: delivery\./,
      beside: ["BellcastProcessDown"],
      cause: killed("worker-1", "worker-2")
    }
  ],
  [
    {
      name: "the planner is stopped",
      alert: "BellcastRoleAbsent",
      says: /: fanout\./,
      beside: ["BellcastProcessDown"],
      cause: killed("planner")
    }
  ],
  [
    {
      name: "the projector is stopped",
      alert: "BellcastRoleAbsent",
      says: /: projection\./,
      beside: ["BellcastProcessDown"],
      cause: killed("projector")
    }
  ],
  [
    {
      name: "one gateway of two is stopped",
      alert: "BellcastProcessDown",
      cause: killed("gateway-2")
    }
  ],
  [
    {
      name: "one NATS server of three is lost",
      alert: "BellcastCopiesMissing",
      cause: serversLost(2)
    }
  ],
  [
    {
      name: "two NATS servers of three are lost",
      alert: "BellcastNatsDown",
      says: /leaderless/,
      cause: serversLost(1, 2)
    }
  ],
  [
    {
      name: "the disk of one NATS server is full",
      alert: "BellcastCopiesMissing",
      cause: disksFull(2)
    }
  ],
  [
    {
      name: "the disks of all NATS servers are full",
      alert: "BellcastNatsDown",
      says: /frozen|disabled/,
      cause: disksFull(0, 1, 2)
    }
  ],
  [
    {
      name: "LOG is 92 % full",
      alert: "BellcastStreamFull",
      says: /507: users\./,
      labels: { stream: "BELLCAST_LOG" },
      cause: filled("BELLCAST_LOG", 0.92)
    }
  ],
  [
    {
      name: "a worker is out of memory",
      alert: "BellcastRestarting",
      beside: ["BellcastMemoryShort", "BellcastProcessDown"],
      cause: outOfMemory
    }
  ],
  [
    {
      name: "two tools change a consumer",
      alert: "BellcastConsumerBroken",
      labels: { consumer: "states" },
      beside: ["BellcastConsumerTampered"],
      cause: foughtConsumer
    }
  ],
  [
    {
      name: "an identity provider is away",
      alert: "BellcastHeartbeat",
      labels: { check: "openid" },
      cause: providerAway
    }
  ],
  alone,
  // A failing heartbeat of the round before would silence it.
  [{ name: "requests fail with 503", alert: "BellcastServerErrors", cause: serverErrors }],
  [
    {
      name: "a push service refuses with 403",
      alert: "BellcastCredentialsRefused",
      labels: { host: labelOf("refusing") },
      cause: answering("refusing", 20, "403")
    },
    {
      name: "a push service throttles",
      alert: "BellcastThrottled",
      labels: { host: labelOf("throttling") },
      cause: answering("throttling", 120, "429 retry-after 5")
    }
  ],
  [
    {
      name: "a push service says 410 of all",
      alert: "BellcastMassGone",
      labels: { host: labelOf("gone") },
      cause: answering("gone", 120, "410")
    },
    {
      name: "a push service refuses all payloads",
      alert: "BellcastPushesDead",
      labels: { host: labelOf("dead") },
      cause: answering("dead", 20, "413")
    }
  ],
  [
    {
      name: "a push service does not answer",
      alert: "BellcastPushServiceUnreachable",
      labels: { host: labelOf("unreachable") },
      cause: answering("unreachable", 20, "reset")
    },
    {
      name: "shards wait behind slow pushes",
      alert: "BellcastBacklog",
      labels: { reader: "deliver" },
      cause: slowPushes
    }
  ],
  [
    {
      name: "403 for ten minutes, and workers are restarted",
      alert: "BellcastCredentialsRefused",
      labels: { host: labelOf("refusing") },
      beside: ["BellcastRestarting", "BellcastProcessDown", "BellcastRoleAbsent"],
      heldMillis: 8 * 60_000,
      cause: refusedBesideRestarts
    }
  ],
  [
    {
      name: "every process is stopped",
      alert: "BellcastDown",
      // The workers were restarted again and again a moment ago.
      beside: ["BellcastRestarting"],
      cause: killed(
        "gateway-1",
        "gateway-2",
        "planner",
        "projector",
        "worker-1",
        "worker-2",
        "tally"
      )
    }
  ]
]
