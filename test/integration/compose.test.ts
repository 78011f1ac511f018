// compose.yaml: its NATS demands a login, and neither container may write or gain privileges.
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { connect } from "@nats-io/transport-node"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { newParts } from "#cli/keys/env-file.ts"
import { locateNatsServer } from "#embedded/program/locate.ts"
import { until } from "../support/client.ts"
import { temporaryFolder } from "../support/folder.ts"
import { claimPort } from "../support/ports.ts"

const file = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), "utf8")
const compose = file("compose.yaml")
const dockerfile = file("src/Dockerfile")
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
      'security_opt: ["no-new-privileges:true"]',
      '  options: { max-size: 50m, max-file: "3" }'
    ])
      assert.include(hardened.split("\n"), line)
    assert.notMatch(blockOf("nats"), /^ports:/m)
  })

  it("gives NATS minutes to recover its streams before it counts as unhealthy", () => {
    assert.match(blockOf("nats"), /^ +start_period: 5m$/m)
  })

  it("names images by their exact version, the one of the Makefile", () => {
    assert.match(blockOf("nats"), /^image: nats:\d+\.\d+\.\d+-alpine$/m)
    const [, version] = /^NODE_VERSION := (\d+\.\d+\.\d+)$/m.exec(file("Makefile")) ?? []
    assert.include(dockerfile, `FROM node:${version}-slim`)
  })

  it("builds an image that says what is deployed, and that has the command bellcast", async () => {
    const folder = await temporaryFolder()
    const [, script] = /^RUN (node -p [^>]*> version\.json)$/m.exec(dockerfile) ?? []
    assert.isDefined(script)
    writeFileSync(join(folder, "package.json"), file("package.json"))
    const env = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, COMMIT: "abc123" }
    execFileSync("/bin/sh", ["-ec", script!], { cwd: folder, env })
    const { version } = JSON.parse(file("package.json")) as { readonly version: string }
    assert.deepEqual(JSON.parse(readFileSync(join(folder, "version.json"), "utf8")), {
      name: "bellcast",
      version,
      commit: "abc123"
    })
    const { bin } = JSON.parse(file("package.json")) as { readonly bin: Record<string, string> }
    const [, target] =
      /ln -s \/bellcast\/(\S+) \/usr\/local\/bin\/bellcast$/m.exec(dockerfile) ?? []
    assert.equal(target, bin["bellcast"])
    const launcher = fileURLToPath(new URL(`../../${target}`, import.meta.url))
    assert.equal(
      execFileSync(launcher, ["--version"], { encoding: "utf8" }).trim(),
      `bellcast v${version}`
    )
  })

  it("says which Docker Compose it needs", () => {
    const least = /Docker Compose 2\.20 or later/
    assert.match(compose.split("\n")[0]!, least)
    assert.match(file("src/cli/README.md"), least)
  })

  // Compose before 5.0.2 evaluates the inner one of nested variables, also where it is not needed.
  it("names each missing value by itself", () => {
    assert.notMatch(compose, /\$\{[^}]*\$\{/)
    for (const { values } of newParts())
      for (const name of Object.keys(values))
        if (name !== "BELLCAST_CHANNEL_WRITE_PRINCIPALS")
          assert.include(compose, `${name}: \${${name}:?`)
  })

  it("starts a nats-server that refuses whoever has no password", async () => {
    const folder = await temporaryFolder()
    const [port, monitor] = [await claimPort(), await claimPort()]
    const [, script = ""] = /- \|\n([\s\S]*)\nenvironment:/.exec(blockOf("nats")) ?? []
    const own = script
      .replaceAll("$$", "$")
      .replaceAll(/^ {4}/gm, "")
      .replaceAll("/tmp/", `${folder}/`)
      .replace('"/var/tmp"', `"${folder}/data"`)
      .replace("0.0.0.0:4222", `127.0.0.1:${port}`)
      .replace("127.0.0.1:8222", `127.0.0.1:${monitor}`)
    const binary = await Effect.runPromise(locateNatsServer)
    const env = { PATH: `${dirname(binary)}:${process.env["PATH"]}` }
    for (const NATS_PASSWORD of ["", "a b", 'a"b', "a#b", "$2a$11$x"])
      assert.throws(
        () =>
          execFileSync("/bin/sh", ["-euc", own], {
            env: { ...env, NATS_PASSWORD },
            stdio: "pipe",
            timeout: 5_000
          }),
        /NATS_PASSWORD may have/,
        NATS_PASSWORD
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
