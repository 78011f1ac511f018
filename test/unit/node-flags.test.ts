// Every start that the documents name gives the same flags to Node.js, also where it compiles: V8
// takes no compiled code of a start with other flags.
import { assert, it } from "vitest"
import { textOf } from "../support/documents.ts"
import { nodeFlags } from "../support/service-process.ts"

const starts = [
  ["Makefile", /^SERVICE := (.*) --env-file/m],
  ["src/Dockerfile", /^RUN ! node (.*) src\/main\.ts/m],
  ["src/Dockerfile", /^CMD \["node", "(.*)", "src\/main\.ts"\]/m],
  ["src/cli/README.md", /^ExecStart=.*node (.*) src\/main\.ts/m],
  ["src/cli/README.md", /`node\s+(.*) src\/main\.ts` in a checkout/m]
] as const

it.each(starts)("%s starts the service with the flags of the tests", (file, start) => {
  assert.equal(start.exec(textOf(file))?.[1], nodeFlags.join(" "))
})
