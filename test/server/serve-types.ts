import type { HealthCheckResponse, ServerType } from '../../src/core/protocol/index.ts'
import { serveYaml } from './serve-yaml.ts'

/** A server with this `types:` part of svc.yaml. `health` asks it for a type over HTTP. */
export async function serveTypes(types: string) {
  const { url, close } = await serveYaml(`types:\n${types}`, { limits: { lingerMs: 0, quietMs: 0, cancelAfterMs: 1 } })
  const health = async (type: ServerType, headers: Readonly<Record<string, string>> = {}) => {
    const response = await fetch(`${url}/healthcheck?ExecutionMode=Advanced&ServerType=${type}`, { headers })
    return { age: response.headers.get('age'), body: (await response.json()) as HealthCheckResponse }
  }
  return { health, [Symbol.asyncDispose]: close }
}
