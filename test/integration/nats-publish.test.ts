// Broadcasts published directly to NATS by another client; malformed ones are rejected with a
// recorded reason.
import { readFileSync } from "node:fs"
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect, headers } from "@nats-io/transport-node"
import { assert, it } from "vitest"
import { call, finished, join, until } from "../support/client.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { useService } from "../support/use-service.ts"

const shared = useService()

// The first: the log has no other broadcasts.
it("takes a broadcast from any NATS client, and a malformed one blocks nothing", {
  timeout: 60_000
}, async () => {
  const { nats, service } = shared
  await using push = await startPushService()
  const agent = push.subscribe()
  await join([service.url], "news", [agent.subscription])
  const nc = await connect({ servers: nats.url })
  try {
    const js = jetstream(nc)
    const withTtl = headers()
    withTtl.set("TTL", "soon")
    const [withBoth, withBadRate, withBadShare] = [headers(), headers(), headers()]
    const [withBadName, asTest] = [headers(), headers()]
    withBoth.set("Bellcast-Name", "Rechnung für Mai")
    withBadName.set("Bellcast-Name", "x".repeat(201))
    // Nothing that goes to a channel may hide in its list.
    asTest.set("Bellcast-Test", "true")
    withBoth.set("Bellcast-Rate", "100")
    withBadRate.set("Bellcast-Rate", "fast")
    withBoth.set("Bellcast-Pause-When", "failed_share=0.25")
    withBadShare.set("Bellcast-Pause-When", "failed_share=25%")
    const subject = "bellcast.cmd.broadcast.billing.news"
    const bad = [
      await js.publish(subject, "not json"),
      await js.publish(subject, JSON.stringify({ data: [1] })),
      await js.publish(subject, `{"data":${'{"a":'.repeat(2_000)}1${"}".repeat(2_000)}}`),
      await js.publish(subject, JSON.stringify({ data: { text: "x".repeat(4_000) } })),
      await js.publish(subject, JSON.stringify({ data: {} }), { headers: withTtl }),
      await js.publish(subject, JSON.stringify({ data: {} }), { headers: withBadRate }),
      // A header for NATS clients.
      await js.publish(subject, JSON.stringify({ data: {}, rate: 100 })),
      await js.publish(subject, JSON.stringify({ data: {} }), { headers: withBadShare }),
      await js.publish(subject, JSON.stringify({ pause_when: { failed_share: 0.2 } })),
      await js.publish(subject, JSON.stringify({ data: {} }), { headers: withBadName }),
      await js.publish(subject, JSON.stringify({ data: {} }), { headers: asTest }),
      await js.publish(subject, JSON.stringify({ data: {}, name: "May" })),
      await js.publish(subject, JSON.stringify({ data: {}, test: true })),
      await js.publish(subject, ""),
      // What would arrive as something else.
      await js.publish(subject, '{"data":{"n":1e400}}'),
      await js.publish(subject, '{"data_by_locale":{"de":{"n":738529527931269425}}}'),
      await js.publish(subject, '{"data":{"n":1},"data":{"n":2}}'),
      // Only a gateway makes dry runs.
      await js.publish(subject, JSON.stringify({ data: {}, dry_run: true })),
      await js.publish(subject, JSON.stringify({ data_by_locale: { "d e": {} } })),
      await js.publish(
        subject,
        JSON.stringify({ data_by_locale: { de: { text: "x".repeat(4_000) } } })
      ),
      await js.publish("bellcast.cmd.broadcast.billing.=ZZ", JSON.stringify({ data: {} })),
      // No path of the API can name it, so nobody could have joined.
      await js.publish("bellcast.cmd.broadcast.billing.news=2Feu", JSON.stringify({ data: {} }))
    ]
    const good = await js.publish(subject, JSON.stringify({ data: { invoice: 7 } }), {
      msgID: "invoice-7",
      headers: withBoth
    })
    const again = await js.publish(subject, JSON.stringify({ data: { invoice: 7 } }), {
      msgID: "invoice-7"
    })
    assert.isTrue(again.duplicate)
    assert.equal(again.seq, good.seq)

    const counts = await finished(service.url, "news", String(good.seq))
    assert.deepInclude(counts, {
      ...{ accepted: 1, delivered: 1, rate: 100, pause_when: { failed_share: 0.25 } },
      name: "Rechnung für Mai"
    })
    const lines = await until(
      async () =>
        service
          .output()
          .split("\n")
          .flatMap((line) => (/"msg":"broadcast /.test(line) ? [JSON.parse(line)] : [])),
      (all) => all.length >= 2
    )
    assert.deepEqual(
      lines.map(({ level, time, ...line }) => line),
      [
        {
          broadcast: good.seq,
          publisher: "nats:billing",
          channel: "news",
          people: 1,
          shards: 1,
          rate: 100,
          msg: "broadcast planned"
        },
        {
          broadcast: good.seq,
          publisher: "nats:billing",
          channel: "news",
          accepted: 1,
          delivered: 1,
          gone: 0,
          expired: 0,
          dead: 0,
          msg: "broadcast finished"
        }
      ]
    )
    assert.deepEqual(
      agent.received.map(({ text }) => text),
      ['{"invoice":7}']
    )

    const jsm = await jetstreamManager(nc)
    for (const { seq } of bad) {
      const fact = await until(
        () =>
          jsm.streams.getMessage("BELLCAST_LOG", { last_by_subj: `bellcast.evt.rejected.${seq}` }),
        (found) => found !== null
      )
      assert.isString(fact?.json<{ reason: string }>().reason)
    }
    const audit = await runCli(["audit", String(bad.at(-1)!.seq), "--nats", nats.url])
    assert.equal(audit.code, 0, audit.stderr)
    assert.match(audit.stdout, /rejected: the subject names no channel: .* without a slash/)
    await js.publish(subject, "x".repeat(33_000)).then(
      () => assert.fail("taken"),
      (error: Error) => assert.match(error.message, /message size exceeds maximum/)
    )
    const answer = await call(
      service.url,
      "GET",
      `/channels/news/broadcasts/${bad[0]!.seq}`,
      "publisher"
    )
    assert.equal(answer.status, 200)
    assert.isString(answer.body.data.rejected)
  } finally {
    await nc.close()
  }
})

it("acknowledges a plain request, as the nats command of the documents sends it", {
  timeout: 60_000
}, async () => {
  const readme = readFileSync(new URL("../../streams/README.md", import.meta.url), "utf8")
  const [, subject = "", payload = ""] = /^nats request (\S+) '(.*?)' \\$/ms.exec(readme) ?? []
  const nc = await connect({ servers: shared.nats.url })
  try {
    const answer = await nc.request(subject, payload, { timeout: 15_000 })
    const reply = answer.json<{ stream: string; seq: number }>()
    assert.equal(reply.stream, "BELLCAST_LOG")
    const jsm = await jetstreamManager(nc)
    const stored = await jsm.streams.getMessage("BELLCAST_LOG", { seq: reply.seq })
    assert.equal(stored?.subject, subject)
  } finally {
    await nc.close()
  }
})
