// compose.yaml: its NATS demands a login, and neither container may write or gain privileges.
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { connect } from "@nats-io/transport-node"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { locateNatsServer } from "#embedded/locate.ts"
import { until } from "../support/client.ts"
import { temporaryFolder } from "../support/folder.ts"
import { freePort } from "../support/service.ts"

const file = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), "utf8")
const compose = file("compose.yaml")
/** The lines of a service, or of another block, below its key. */
const blockOf = (key: string): string => {
  const [, indent, rest] =
    new RegExp(`^( *)${key}:.*\n((?:\\1 +.*\n| *\n)+)`, "m").exec(compose) ?? []
  assert.isDefined(rest, key)
  return rest!.replaceAll(new RegExp(`^${indent}  `, "gm"), "")
}

describe("compose.yaml", () => {
  it("gives no container more than it needs", () => {
    for (const service of ["nats", "bellcast"])
      assert.match(blockOf(service), /^<<: \*hardened$/m, service)
    const hardened = blockOf("x-hardened")
    for (const line of [
      "read_only: true",
      "cap_drop: [ALL]",
      'security_opt: ["no-new-privileges:true"]'
    ])
      assert.include(hardened.split("\n"), line)
    assert.notMatch(blockOf("nats"), /^ports:/m)
  })

  it("names images by their exact version, the one of the Makefile", () => {
    assert.match(blockOf("nats"), /^image: nats:\d+\.\d+\.\d+-alpine$/m)
    const [, version] = /^NODE_VERSION := (\d+\.\d+\.\d+)$/m.exec(file("Makefile")) ?? []
    assert.include(compose, `FROM node:${version}-slim`)
  })

  it("starts a nats-server that refuses whoever has no password", async () => {
    const folder = await temporaryFolder()
    const [port, monitor] = [await freePort(), await freePort()]
    const [, script = ""] = /- \|\n([\s\S]*)\nenvironment:/.exec(blockOf("nats")) ?? []
    const own = script
      .replaceAll("$$", "$")
      .replaceAll(/^ {4}/gm, "")
      .replaceAll("/tmp/", `${folder}/`)
      .replace('"/data"', `"${folder}/data"`)
      .replace("0.0.0.0:4222", `127.0.0.1:${port}`)
      .replace("127.0.0.1:8222", `127.0.0.1:${monitor}`)
    const binary = await Effect.runPromise(locateNatsServer)
    const env = { PATH: `${dirname(binary)}:${process.env["PATH"]}` }
    assert.throws(
      () =>
        execFileSync("/bin/sh", ["-euc", own], {
          env: { ...env, NATS_PASSWORD: "" },
          stdio: "pipe"
        }),
      /NATS_PASSWORD: is empty/
    )
    const password = "0e1-_a"
    const server = spawn("/bin/sh", ["-euc", own], {
      env: { ...env, NATS_PASSWORD: password },
      stdio: "ignore"
    })
    const exited = once(server, "exit")
    const login = { servers: `127.0.0.1:${port}`, user: "bellcast" }
    try {
      const nc = await until(
        () => connect({ ...login, pass: password }).catch(() => undefined),
        (each) => each !== undefined
      )
      assert.isTrue(nc?.info?.jetstream)
      await nc?.close()
      const refused = await connect({ ...login, pass: "" }).catch((error: Error) => error.message)
      assert.equal(refused, "Authorization Violation")
      const health = `http://127.0.0.1:${monitor}/healthz?js-enabled-only=true`
      assert.equal((await fetch(health)).status, 200)
      assert.include(readFileSync(join(folder, "nats.conf"), "utf8"), password)
    } finally {
      server.kill("SIGKILL")
      await exited
    }
  })
})
