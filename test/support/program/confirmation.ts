import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../suite/until.ts'
import type { Serving } from './serving.ts'

/** A real TCP server that goes and comes back on its port. */
export type Listener = {
  readonly name: string
  readonly host: string
  readonly port: number
  readonly down: () => Promise<void>
  readonly up: () => Promise<void>
}

let listeners = 0

/**
 * Its port is outside the range from which the kernel takes free ones, and its address its own, so that no other program
 * can be reached there while it is down.
 */
export async function startListener(name: string): Promise<Listener> {
  listeners += 1
  const host = `127.${64 + (process.pid % 128)}.${listeners >> 8}.${listeners & 255}`
  const port = 20_000 + (process.pid % 10_000)
  const open = new Set<Socket>()
  let server: Server
  const up = async (): Promise<void> => {
    server = createServer((socket) => {
      open.add(socket)
      socket.on('error', () => {}).once('close', () => open.delete(socket))
    })
    await once(server.listen(port, host), 'listening')
  }
  await up()
  return {
    name,
    host,
    port,
    up,
    down: async () => {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      for (const socket of open) socket.destroy()
      await closed
    },
  }
}

/** An incident as `GET /history` has it. Instants are milliseconds since 1970. */
export type HistoryIncident = {
  readonly check: string
  readonly from: number
  /** Undefined while it stands. */
  readonly to: number | undefined
  readonly ending: string | undefined
  readonly fault: string | undefined
  readonly message: string
}

/** The monitors of a server that watches by itself, by their names. */
export type Watch = {
  /** Whether all checks of a monitor are well in their latest results. Undefined: it has none. */
  readonly isWell: (monitor: string) => Promise<boolean | undefined>
  /** How many faults of a monitor were over before they were confirmed. */
  readonly blips: (monitor: string) => Promise<number>
  readonly incidents: () => Promise<ReadonlyMap<string, readonly HistoryIncident[]>>
}

type HistoryAnswer = {
  readonly Monitors: readonly {
    readonly MonitorName: string
    readonly Incidents?: readonly {
      readonly MonitoringName: string
      readonly From: string
      readonly To?: string
      readonly Ending?: string
      readonly Fault?: string
      readonly Message?: string
    }[]
  }[]
}

/** How often a server is read, however many wait for what it shows. Milliseconds. */
const readEveryMs = 250

const instant = (text: string): number => Number(/\d+/.exec(text)?.[0])
const labelIn = (line: string, name: string): string => line.split(`${name}="`)[1]?.split('"')[0] ?? ''

/** Shares one read among all who look at the same time. */
function shared<T>(read: () => Promise<T>): () => Promise<T> {
  let latest: { readonly at: number; readonly value: Promise<T> } | undefined
  return () => {
    const now = performance.now()
    if (latest === undefined || now - latest.at > readEveryMs) latest = { at: now, value: read() }
    return latest.value
  }
}

export function watch({ port }: Pick<Serving, 'port'>): Watch {
  const get = async (path: string): Promise<Response> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`)
    if (!response.ok) throw new Error(`${path}: HTTP ${response.status}: ${await response.text()}`)
    return response
  }
  const samples = shared(async () => {
    const well = new Map<string, boolean>()
    const blips = new Map<string, number>()
    for (const line of (await (await get('/metrics')).text()).split('\n')) {
      const monitor = labelIn(line, 'monitor')
      const value = Number(line.slice(line.lastIndexOf(' ') + 1))
      if (line.startsWith('svc_check_success{')) well.set(monitor, well.get(monitor) !== false && value === 1)
      if (line.startsWith('svc_check_blips_total{')) blips.set(monitor, (blips.get(monitor) ?? 0) + value)
    }
    return { well, blips }
  })
  const incidents = shared(async () => {
    const { Monitors } = (await (await get('/history?SinceMinutes=60')).json()) as HistoryAnswer
    return new Map(
      Monitors.map(({ MonitorName, Incidents = [] }) => [
        MonitorName,
        Incidents.map(({ MonitoringName, From, To, Ending, Fault, Message = '' }) => ({
          check: MonitoringName,
          from: instant(From),
          to: Ending === undefined || To === undefined ? undefined : instant(To),
          ending: Ending,
          fault: Fault,
          message: Message,
        })),
      ]),
    )
  })
  return {
    isWell: async (monitor) => (await samples()).well.get(monitor),
    blips: async (monitor) => (await samples()).blips.get(monitor) ?? 0,
    incidents,
  }
}

/** The monitor of a listener. */
export const monitorOf = ({ name }: Pick<Listener, 'name'>): string => `tcp ${name}`

/** Restarts a listener so often. Each restart lasts until a run has seen it, and `restMs(nth)` longer. */
export async function restarts(
  listener: Listener,
  { isWell, blips }: Watch,
  {
    times,
    restMs,
    maxMs,
  }: { readonly times: number; readonly restMs: (nth: number) => number; readonly maxMs: number },
): Promise<void> {
  const monitor = monitorOf(listener)
  for (let nth = 1; nth <= times; nth += 1) {
    await listener.down()
    await until(async () => (await isWell(monitor)) === false, maxMs, readEveryMs)
    await pause(restMs(nth))
    await listener.up()
    await until(async () => (await blips(monitor)) >= nth && (await isWell(monitor)) === true, maxMs, readEveryMs)
  }
}

/** Takes a listener down for so long, and waits until its incident is over. Gives the instants of both. */
export async function outage(
  listener: Listener,
  { incidents }: Watch,
  { ms, maxMs }: { readonly ms: number; readonly maxMs: number },
): Promise<{ readonly downAt: number; readonly upAt: number; readonly faults: readonly HistoryIncident[] }> {
  const downAt = Date.now()
  await listener.down()
  await pause(ms)
  const upAt = Date.now()
  await listener.up()
  const faults = await until(
    async () => {
      const all = (await incidents()).get(monitorOf(listener)) ?? []
      return all.length > 0 && all.every(({ ending }) => ending !== undefined) && all
    },
    maxMs,
    readEveryMs,
  )
  return { downAt, upAt, faults }
}
