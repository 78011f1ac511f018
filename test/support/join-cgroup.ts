// Preloaded into a process that joins a group of processes before it takes memory (cgroup.ts).
import { writeFileSync } from "node:fs"

const file = process.env["TEST_CGROUP"]
if (file !== undefined) writeFileSync(file, String(process.pid))
