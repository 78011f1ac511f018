// The images that compose.yaml and src/Dockerfile begin with. Where no registry answers, they are
// made of Debian packages, of this machine's npm and certificates, and of the node and nats-server
// that the other tests use. They hold what the official images have and the files use.
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { locateNatsServer } from "#embedded/program/locate.ts"
import { run } from "./run.ts"

const authorities = "/etc/ssl/certs/ca-certificates.crt"
const packages = ["busybox-static", "libc6", "libgcc-s1", "libstdc++6"]

const put = (from: string, to: string) => {
  mkdirSync(dirname(to), { recursive: true })
  cpSync(from, to, { recursive: true, dereference: true })
}

/** A folder with a shell and its tools, the C library, and folders open to every user. */
const smallDebian = async (folder: string): Promise<string> => {
  const root = join(folder, "root")
  for (const each of ["etc", "tmp", "var/tmp", "bin", "usr/bin", "home/node"])
    mkdirSync(join(root, each), { recursive: true })
  await run("apt-get", ["download", "-qq", ...packages], { cwd: folder })
  for (const name of readdirSync(folder).filter((each) => each.endsWith(".deb")))
    await run("dpkg", ["-x", join(folder, name), root])
  for (const each of ["tmp", "var/tmp"]) chmodSync(join(root, each), 0o1777)
  // Debian 13 has it in usr/bin.
  const busybox = ["/bin/busybox", "/usr/bin/busybox"].find((each) => existsSync(root + each))!
  for (const applet of (await run(root + busybox, ["--list"])).trim().split("\n"))
    for (const each of ["bin", "usr/bin"])
      if (applet !== "busybox") symlinkSync(busybox, join(root, each, applet))
  const users = ["root:x:0:0::/root:/bin/sh", "node:x:1000:1000::/home/node:/bin/sh", ""]
  writeFileSync(join(root, "etc/passwd"), users.join("\n"))
  writeFileSync(join(root, "etc/group"), ["root:x:0:", "node:x:1000:node", ""].join("\n"))
  return root
}

const addNode = async (root: string) => {
  put(process.execPath, join(root, "usr/local/bin/node"))
  const npm = realpathSync((await run("sh", ["-c", "command -v npm"])).trim())
  put(dirname(dirname(npm)), join(root, "usr/local/lib/node_modules/npm"))
  symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(root, "usr/local/bin/npm"))
  if (existsSync(authorities)) put(authorities, join(root, authorities))
}

const addNats = async (root: string) =>
  put(await Effect.runPromise(locateNatsServer), join(root, "usr/local/bin/nats-server"))

const made: ReadonlyArray<readonly [RegExp, (root: string) => Promise<void>, string]> = [
  [/^node:/, addNode, `ENV NODE_EXTRA_CA_CERTS=${authorities}`],
  [/^nats:/, addNats, "EXPOSE 4222"]
]

/** Makes an image of this name available. Returns where it comes from. */
export const provide = async (image: string): Promise<string> => {
  const succeeds = (...args: ReadonlyArray<string>) =>
    run("docker", [...args, image]).then(
      () => true,
      () => false
    )
  if (await succeeds("image", "inspect", "--format", "{{.Id}}")) return "there"
  if (await succeeds("pull", "--quiet")) return "pulled"
  const [, add, change] = made.find(([pattern]) => pattern.test(image))!
  const path = "ENV PATH=/usr/local/bin:/usr/bin:/bin"
  const options = ["--change", path, "--change", change]
  const pipe = `tar -C "$1" -c . | docker import ${options.map((each) => `'${each}'`).join(" ")} -`
  const folder = await mkdtemp(join(tmpdir(), "bellcast-"))
  try {
    const root = await smallDebian(folder)
    await add(root)
    await run("sh", ["-ec", `${pipe} "$2"`, "sh", root, image])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  return "made of packages of this machine"
}
