import { openData } from '../../src/core/store/index.ts'
import { emptyPack, encodeBlock, measure, type Pack } from '../../src/core/watch/periods/index.ts'
import type { TrialServer } from './ten-servers.ts'

const hour = 3_600_000
const day = 24 * hour

/** Days ago and hours down on that day, by the name of the monitor. */
const outages: Readonly<Record<string, readonly (readonly [number, number])[]>> = {
  reports: [
    [12, 2],
    [13, 1],
    [48, 5],
  ],
  dashboard: [
    [12, 2],
    [48, 5],
  ],
  nightly: [[48, 5]],
  checkout: [
    [3, 1],
    [31, 1],
    [32, 2],
    [70, 9],
  ],
  search: [[22, 3]],
}
/** Days ago with a warning. */
const warnings: Readonly<Record<string, readonly number[]>> = { worker: [5, 6, 20, 41], login: [1, 2, 3] }

/** Writes 90 simulated days of these monitors into the store, in hours, as `svc serve` would have written them. */
export async function writeSimulatedHistory(store: string, servers: readonly TrialServer[]): Promise<void> {
  const data = await openData({ store, create: true })
  const today = Math.floor(Date.now() / day) * day
  const figures = ['connect', 'latency', 'handshake'].map((check) => JSON.stringify([check, 'milliseconds']))
  const firstAt = today - 90 * day
  const numbered = await data.history.number({
    names: [...figures, 'connect', 'status'],
    monitors: servers.map(({ type, kind, name }) => ({
      key: `${type}/${kind}/${name}`,
      type,
      name: `${kind} ${name}`,
      firstAt,
    })),
  })
  const numberOf = (text: string): number => numbered.names.find((one) => one.text === text)?.number ?? 0
  for (let at = firstAt; at < today; at += day) {
    const ago = (today - at) / day
    const blocks = numbered.monitors.map(({ number, name, key }) => {
      const short = name.split(' ').at(-1) ?? ''
      const down = outages[short]?.find(([days]) => days === ago)?.[1] ?? 0
      const hours = Array.from({ length: 24 }, (_, index) =>
        packOf(index >= 2 && index < 2 + down, warnings[short]?.includes(ago) === true, [index, ago, number], key),
      )
      return { tier: 1, at, monitor: number, runs: 24 * 60, ...encodeBlock(hours, hour, numberOf) }
    })
    await data.history.write({ blocks, deleteRunsBefore: 0 })
  }
  await data.close()
}

/** The check that measures how fast a monitor of this kind answers. */
const responseCheck = (key: string): string =>
  key.includes('/http/') ? 'latency' : key.includes('/tls/') ? 'handshake' : 'connect'

/** An hour of a monitor: down or up, with its time of connecting. */
function packOf(isDown: boolean, isWarned: boolean, [index, ago, number]: readonly number[], key: string): Pack {
  const pack = emptyPack()
  pack.runs = 60
  if (isDown) {
    pack.down.fill(hour)
    pack.failing = new Map([[key.includes('/http/') ? 'status' : 'connect', hour]])
    return pack
  }
  pack.up.fill(hour)
  if (isWarned) pack.warned = 2
  const base = 3 + (number ?? 0) + 2 * Math.sin(((index ?? 0) / 24) * 2 * Math.PI) + ((ago ?? 0) % 7) / 5
  for (const factor of [0.8, 1, 1.4]) measure(pack, JSON.stringify([responseCheck(key), 'milliseconds']), base * factor)
  return pack
}
