// One gateway, with a nats-server of its own, for all tests of a file.
import { useService } from "../shared.ts"

export const useGateway = (env: Readonly<Record<string, string>>) =>
  useService({ roles: "gateway,projection", env })
