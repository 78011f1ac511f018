// The layer with all services of src/nats/, for main.ts, the CLI and tests.
import * as Layer from "effect/Layer"
import { Nats, type NatsOptions } from "./connection/connection.ts"
import { Micro } from "./connection/micro.ts"
import { Processes } from "./connection/processes.ts"
import { PubSub } from "./connection/pubsub.ts"
import { Followers } from "./follower/follower.ts"
import { Watermark } from "./follower/watermark.ts"
import { Buckets } from "./kv/bucket.ts"
import { Consumers } from "./stream/consumer.ts"
import { EventLog } from "./stream/event-log.ts"
import { Backlog } from "./watch/backlog.ts"

export const natsLayer = (options: NatsOptions) =>
  Layer.mergeAll(
    EventLog.layer,
    Micro.layer,
    Consumers.layer,
    Watermark.layer,
    Layer.merge(Followers.layer, Backlog.layer).pipe(Layer.provideMerge(Buckets.layer))
  ).pipe(
    Layer.provideMerge(Processes.layer.pipe(Layer.provideMerge(PubSub.layer))),
    Layer.provideMerge(Nats.layer(options))
  )
