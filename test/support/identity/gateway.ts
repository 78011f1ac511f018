// One gateway, with a nats-server of its own, for all tests of a file.
import { useService } from "../use-service.ts"

export const useGateway = (env: Readonly<Record<string, string>>) =>
  useService({ roles: "gateway,projection", env })
