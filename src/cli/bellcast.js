#!/usr/bin/env node
// The command `bellcast`, as package.json names it under `bin`. Plain JavaScript: Node 22.19 and
// later run the .ts files beside it as they are; an older Node gets a message instead of a syntax
// error.
const [major, minor] = process.versions.node.split(".").map(Number)
if (major > 22 || (major === 22 && minor >= 19)) await import("./main.ts")
else {
  console.error(`bellcast: Node ${process.versions.node} is too old: 22.19 or later is needed`)
  process.exitCode = 1
}
