// A TCP proxy before one server, to fail one link at will: cut it, freeze one or both directions,
// delay it. The address stays the same whatever happens.
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"

export type Direction = "to server" | "to client"

/** How a link fails: everything is refused, or the bytes of these directions wait. */
interface State {
  isCut: boolean
  readonly held: Set<Direction>
  delayMillis: number
}

/** `undefined` is the end of the data. */
interface Waiting {
  readonly dueAt: number
  readonly chunk: Buffer | undefined
}

/**
 * One direction of one connection. Held bytes are not dropped: a network that works again delivers
 * what TCP still has to send, and a gap would break the protocol above in ways no network can.
 */
class Pipe {
  readonly #from: Socket
  readonly #to: Socket
  readonly #direction: Direction
  readonly #state: State
  readonly #queue: Array<Waiting> = []
  #timer: NodeJS.Timeout | undefined
  #hasEnded = false

  constructor(from: Socket, to: Socket, direction: Direction, state: State) {
    this.#from = from
    this.#to = to
    this.#direction = direction
    this.#state = state
    const end = () => this.#end()
    from.on("data", (chunk: Buffer) => this.#add(chunk))
    from.on("end", end)
    from.on("close", end)
    to.on("drain", () => this.flush())
    to.on("close", () => this.flush())
  }

  #add(chunk: Buffer | undefined): void {
    this.#queue.push({ dueAt: performance.now() + this.#state.delayMillis, chunk })
    this.flush()
  }

  /** Bytes that were sent before the end arrive all the same, as TCP would deliver them. */
  #end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#add(undefined)
  }

  /** Sends what is due. The sender is paused while anything waits, so that a queue stays short. */
  flush(): void {
    clearTimeout(this.#timer)
    if (this.#to.destroyed) this.#queue.length = 0
    while (this.#queue.length > 0 && !this.#waits()) {
      const { chunk } = this.#queue.shift()!
      if (chunk === undefined) this.#to.end()
      else this.#to.write(chunk)
    }
    const isHeld = this.#state.held.has(this.#direction)
    if (!this.#to.destroyed && (isHeld || this.#to.writableNeedDrain)) this.#from.pause()
    else this.#from.resume()
    const next = this.#queue[0]
    if (next !== undefined && !isHeld)
      this.#timer = setTimeout(() => this.flush(), Math.max(1, next.dueAt - performance.now()))
  }

  #waits(): boolean {
    return (
      this.#state.held.has(this.#direction) ||
      this.#to.writableNeedDrain ||
      this.#queue[0]!.dueAt > performance.now()
    )
  }
}

interface Connection {
  readonly client: Socket
  readonly upstream: Socket
  readonly pipes: ReadonlyArray<Pipe>
}

export class TcpProxy implements AsyncDisposable {
  readonly port: number
  readonly #server: Server
  readonly #targetPort: number
  readonly #connections = new Set<Connection>()
  readonly #state: State = { isCut: false, held: new Set(), delayMillis: 0 }

  private constructor(server: Server, targetPort: number) {
    this.#server = server
    this.#targetPort = targetPort
    this.port = (server.address() as AddressInfo).port
    server.on("connection", (client) => this.#accept(client))
  }

  /** Listens on a free port of 127.0.0.1 and passes everything on to `targetPort`. */
  static async start(targetPort: number): Promise<TcpProxy> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }).listen(0, "127.0.0.1")
    await once(server, "listening")
    return new TcpProxy(server, targetPort)
  }

  /** Connections that are open now. */
  get connections(): number {
    return this.#connections.size
  }

  /** Resets all connections, and every new one until `heal`. */
  cut(): void {
    this.#state.isCut = true
    this.reset()
  }

  /** Resets all connections; new ones are accepted. */
  reset(): void {
    for (const { client, upstream } of this.#connections) {
      client.resetAndDestroy()
      upstream.resetAndDestroy()
    }
  }

  /** Nothing passes in these directions, on old and new connections, until `heal`. */
  freeze(...directions: ReadonlyArray<Direction>): void {
    const all: ReadonlyArray<Direction> = ["to server", "to client"]
    for (const direction of directions.length === 0 ? all : directions)
      this.#state.held.add(direction)
    this.#flush()
  }

  /** Every byte arrives so much later, in both directions, until `heal`. */
  delay(millis: number): void {
    this.#state.delayMillis = millis
  }

  heal(): void {
    this.#state.isCut = false
    this.#state.delayMillis = 0
    this.#state.held.clear()
    this.#flush()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    for (const { client, upstream } of this.#connections) {
      client.destroy()
      upstream.destroy()
    }
  }

  #flush(): void {
    for (const { pipes } of this.#connections) for (const pipe of pipes) pipe.flush()
  }

  #accept(client: Socket): void {
    client.on("error", () => {})
    if (this.#state.isCut) {
      client.resetAndDestroy()
      return
    }
    const upstream = connect({
      port: this.#targetPort,
      host: "127.0.0.1",
      allowHalfOpen: true,
      noDelay: true
    })
    upstream.on("error", () => client.resetAndDestroy())
    const pipes = [
      new Pipe(client, upstream, "to server", this.#state),
      new Pipe(upstream, client, "to client", this.#state)
    ]
    const connection = { client, upstream, pipes }
    this.#connections.add(connection)
    const forget = () => {
      if (client.destroyed && upstream.destroyed) this.#connections.delete(connection)
    }
    client.on("close", forget)
    upstream.on("close", forget)
  }
}
