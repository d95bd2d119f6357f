import { expect } from 'vitest'
import { until } from '../suite/until.ts'
import { ask, figure, type NodeOptions, type ServeNode, signIn, startNode, tokenOf } from './serve-node.ts'

/** Nodes that share a store, by their names. */
export type LeaseNodes = AsyncDisposable & {
  readonly start: (name: string, more?: Partial<NodeOptions>) => Promise<void>
  readonly get: (name: string) => ServeNode
  readonly names: () => readonly string[]
  readonly end: (name: string, signal: 'SIGKILL' | 'SIGTERM') => Promise<void>
  /** Those that say that they hold the lease. */
  readonly holders: () => Promise<readonly string[]>
  /** The only one that says so. Waits for it. */
  readonly holder: () => Promise<string>
  /** Any other one than the holder. */
  readonly standby: () => Promise<string>
  /** A value of `/metrics` of this node. */
  readonly figure: (name: string, family: string) => Promise<number | undefined>
  readonly text: (name: string, path: string) => Promise<string>
  /** As Ann. The body of an answer that is not 200 fails the test. */
  readonly call: (name: string, path: string, body?: object) => Promise<string>
  /** Waits until it holds. If that is in vain, the failure has the logs of all nodes. */
  readonly wait: <T>(holds: () => T | Promise<T>, ms?: number) => Promise<Exclude<T, false>>
}

export function leaseNodes(optionsOf: (name: string) => NodeOptions): LeaseNodes {
  const nodes = new Map<string, ServeNode>()
  const tokens = new Map<string, string>()
  const get = (name: string): ServeNode => nodes.get(name) ?? expect.fail(`no node ${name}`)
  /** Without the requests. */
  const logs = (): string =>
    [...nodes]
      .map(
        ([name, one]) =>
          `== ${name}\n${one
            .log()
            .replaceAll(/^.*"msg":"answered".*\n/gm, '')
            .slice(-3_000)}`,
      )
      .join('\n')
  const wait: LeaseNodes['wait'] = async (holds, ms) =>
    await until(holds, ms, 100).catch((error: unknown) => expect.fail(`${error}\n${logs()}`))
  const figureOf: LeaseNodes['figure'] = async (name, family) => await figure(get(name), family)
  const holders = async (): Promise<readonly string[]> => {
    const all = await Promise.all(
      [...nodes.keys()].map(async (name) => ((await figureOf(name, 'svc_node_holds_lease')) === 1 ? [name] : [])),
    )
    return all.flat()
  }
  const holder = async (): Promise<string> => {
    const [own = ''] = await wait(async () => {
      const all = await holders()
      return all.length === 1 && all
    })
    return own
  }
  return {
    start: async (name, more) => {
      nodes.set(name, await startNode({ ...optionsOf(name), ...more }))
      tokens.delete(name)
    },
    get,
    names: () => [...nodes.keys()],
    end: async (name, signal) => {
      const one = get(name)
      nodes.delete(name)
      one.signal(signal)
      await one.ended
      await one.stop()
    },
    holders,
    holder,
    standby: async () => {
      const own = await holder()
      return [...nodes.keys()].find((name) => name !== own) ?? expect.fail('there is one node only')
    },
    figure: figureOf,
    text: async (name, path) => (await ask(`${get(name).url}${path}`, { headers: { accept: 'text/html' } })).body,
    call: async (name, path, body) => {
      const token = tokens.get(name) ?? tokenOf(await signIn(get(name)))
      tokens.set(name, token)
      const json = { accept: 'application/json', 'content-type': 'application/json' }
      const headers = { ...json, authorization: `Bearer ${token}` }
      const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
      const answer = await ask(`${get(name).url}${path}`, init)
      expect([path, answer.status, answer.body]).toEqual([path, 200, expect.any(String)])
      return answer.body
    },
    wait,
    [Symbol.asyncDispose]: async () => {
      for (const one of nodes.values()) await one[Symbol.asyncDispose]()
    },
  }
}
