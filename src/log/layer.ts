// Everything in this folder, connected: what main.ts, the CLI and tests provide to the stages.
import { Layer } from "effect"
import { Announcements } from "./announcements.ts"
import { Backlog } from "./backlog.ts"
import { Buckets } from "./bucket.ts"
import { Consumers } from "./consume.ts"
import { Followers } from "./follow.ts"
import { Log } from "./log.ts"
import { Nats, type NatsOptions } from "./nats.ts"
import { Watermark } from "./watermark.ts"

export const logLayer = (options: NatsOptions) =>
  Layer.mergeAll(
    Log.layer,
    Backlog.layer,
    Consumers.layer,
    Watermark.layer.pipe(Layer.provideMerge(Announcements.layer)),
    Followers.layer.pipe(Layer.provideMerge(Buckets.layer))
  ).pipe(Layer.provideMerge(Nats.layer(options)))
