// The API description of a running service with real tools: a linter, generators of clients whose
// results must compile with typed payloads and results, and random requests made of it.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { copyFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { basicauth } from "../conformance/logins/basicauth.ts"
import type { Running } from "../conformance/target.ts"
import { start } from "../conformance/target.ts"
import { makeFolder } from "../support/folder.ts"
import { useShared } from "../support/use-service.ts"

const here = fileURLToPath(new URL(".", import.meta.url))
const tools = fileURLToPath(new URL("../../.tools/openapi/", import.meta.url))
const own = fileURLToPath(new URL("../../node_modules/.bin/", import.meta.url))
const npm = (name: string) => join(tools, "npm/node_modules/.bin", name)
const python = (name: string) => join(tools, "python/bin", name)

/** Whether a program is there; says so if not. */
const has = (program: string): boolean => {
  const found = existsSync(program)
  if (!found) process.stderr.write(`skipped: ${program} (make could not fetch it)\n`)
  return found
}

/** Runs a program, and fails with all that it printed if it fails. */
const run = async (program: string, args: ReadonlyArray<string>, cwd: string) => {
  const env = { ...process.env, PATH: `${join(tools, "python/bin")}:${process.env["PATH"]}` }
  const child = spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] })
  let output = ""
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text
    })
  const [code] = await once(child, "close")
  expect(code, `${program} ${args.join(" ")}\n${output}`).toBe(0)
  return output
}

/** All: without one of them the heartbeat is 503. */
const roles = "gateway,projection,fanout,delivery,tally"

describe("the description", () => {
  const shared = useShared(async (opened) => {
    const running: Running = opened.use(await start(1, basicauth, { roles }))
    const folder = opened.use(await makeFolder({}))
    const response = await fetch(`${running.target.origin}/v1/__api__`)
    await writeFile(join(folder.path, "api.json"), await response.text())
    return { origin: running.target.origin, publisher: running.target.publisher, folder }
  })

  it.skipIf(!has(npm("redocly")))("has no error for redocly", { timeout: 120_000 }, async () => {
    const { path } = shared.folder
    expect(await run(npm("redocly"), ["lint", "api.json"], path)).toMatch(/is valid/)
  })

  it.skipIf(!has(npm("openapi-typescript")))(
    "makes TypeScript with typed payloads, results and errors",
    { timeout: 120_000 },
    async () => {
      const { path } = shared.folder
      await run(npm("openapi-typescript"), ["api.json", "-o", "api.ts"], path)
      await copyFile(join(here, "use.ts.txt"), join(path, "use.ts"))
      const strict = ["--noEmit", "--strict", "--skipLibCheck", "--exactOptionalPropertyTypes"]
      await run(join(own, "tsc"), [...strict, "use.ts"], path)
    }
  )

  it.skipIf(!has(python("openapi-python-client")))(
    "makes a client in Python with typed payloads and results, of every operation",
    { timeout: 240_000 },
    async () => {
      const { path } = shared.folder
      const args = ["generate", "--path", "api.json", "--output-path", "made", "--meta", "none"]
      const output = await run(python("openapi-python-client"), args, path)
      expect(output).not.toMatch(/WARNING|ERROR|parsing|unsupported/i)
      await copyFile(join(here, "use.py"), join(path, "use.py"))
      await run(python("mypy"), ["--strict", "--follow-imports=silent", "use.py"], path)
      await run(python("python"), ["use.py"], path)
    }
  )

  it.skipIf(!has(python("schemathesis")))(
    "agrees with what the service does with two minutes of random requests",
    { timeout: 300_000 },
    async () => {
      const { origin, publisher } = shared
      const checks = [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance"
      ]
      const args = [
        "run",
        `${origin}/v1/__api__`,
        ...["--auth", publisher, "--checks", checks.join(), "--max-time", "120"],
        // A stream of events does not end, and a test of a subscription waits for its push service.
        ...["--exclude-path-regex", "/(events|test)$", "--request-timeout", "20", "--seed", "1"],
        // With two workers, CPython fails at times when both compile ("AST constructor recursion").
        ...["--phases", "examples,coverage,fuzzing", "--warnings", "off", "--workers", "1"]
      ]
      await run(python("schemathesis"), args, shared.folder.path)
    }
  )
})
