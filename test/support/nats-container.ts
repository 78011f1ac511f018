// The official nats-server image, through testcontainers.
import { connect } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { GenericContainer, getContainerRuntimeClient, Wait } from "testcontainers"
import type { StartNats } from "./nats.ts"
import { claimPort } from "./ports.ts"

const image = process.env["BELLCAST_TEST_NATS_IMAGE"] ?? "nats:2.15.1"
const answerTimeoutMillis = 10_000

const configOf = (syncInterval: string) => `
listen: "0.0.0.0:4222"
jetstream { store_dir: "/data", sync_interval: ${syncInterval} }
`

/**
 * True if the server sends INFO, its first message. A successful connect is not enough: Docker's
 * proxy accepts connections before the server listens.
 */
const greets = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 1_000 })
    const end = (greeted: boolean) => {
      socket.destroy()
      resolve(greeted)
    }
    socket.once("data", (data) => end(data.toString().startsWith("INFO ")))
    for (const event of ["error", "timeout", "close"]) socket.once(event, () => end(false))
  })

const answered = async (host: string, port: number) => {
  const deadline = AbortSignal.timeout(answerTimeoutMillis)
  while (!(await greets(host, port))) {
    if (deadline.aborted)
      throw new Error(`nats-server in its container did not answer on ${host}:${port}`)
    await sleep(20)
  }
}

export const startNatsContainer: StartNats = async (syncInterval) => {
  // Docker would give the container another port at each start.
  const hostPort = await claimPort()
  const started = await new GenericContainer(image)
    .withExposedPorts({ container: 4222, host: hostPort })
    .withCopyContentToContainer([{ content: configOf(syncInterval), target: "/bellcast.conf" }])
    .withCommand(["-c", "/bellcast.conf"])
    // The image has no shell, which the usual wait for a listening port would need.
    .withWaitStrategy(Wait.forLogMessage("Server is ready"))
    .start()
  const client = await getContainerRuntimeClient()
  const container = client.container.getById(started.getId())
  const host = started.getHost()
  const running = async () => (await container.inspect()).State.Running
  await answered(host, hostPort)
  return {
    url: `nats://${host}:${hostPort}`,
    folder: undefined,
    kill: async () => {
      const gone = container.wait()
      await container.kill({ signal: "SIGKILL" })
      await gone
    },
    restart: async () => {
      if (await running()) await container.stop({ t: 5 })
      await container.start()
      await answered(host, hostPort)
    },
    [Symbol.asyncDispose]: async () => {
      await started.stop({ remove: true, removeVolumes: true })
    }
  }
}
