import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { bareHost, isLoopback } from '../../base/loopback.ts'
import { loadSystemInformation } from '../../base/system/files.ts'
import type { OpenPort } from '../recognition/index.ts'

/** The state of a listening socket in /proc/net/tcp and tcp6. */
const listens = '0A'

/**
 * The listening ports of this machine, each with one address: loopback if that reaches it. Read from the kernel on
 * Linux, from the system's own tools elsewhere. This needs no privileges.
 */
export async function openPorts(): Promise<readonly OpenPort[]> {
  const ports = process.platform === 'linux' ? await fromKernel() : await fromTools()
  const byPort = new Map<number, OpenPort>()
  for (const one of ports) {
    const existing = byPort.get(one.port)
    if (!existing || rank(one.host) < rank(existing.host)) byPort.set(one.port, one)
  }
  return [...byPort.values()].sort((a, b) => a.port - b.port)
}

const rank = (host: string): number => (isLoopback(host) ? (isIP(host) === 4 ? 0 : 1) : 2)

async function fromKernel(): Promise<readonly OpenPort[]> {
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFile(path, 'latin1').catch(() => '')),
  )
  return tables.flatMap(parseListening)
}

/** The listening sockets in a table of the format of /proc/net/tcp. Wildcard addresses become loopback. */
export function parseListening(table: string): readonly OpenPort[] {
  return table.split('\n').flatMap((line) => {
    const [, address = '', digits = '', state] =
      /^\s*\d+: ([0-9A-F]+):([0-9A-F]{4}) \S+ ([0-9A-F]{2}) /.exec(line) ?? []
    if (state !== listens) return []
    const host = address.length === 8 ? fourOf(address) : sixOf(address)
    return [{ host: reached(host), port: Number.parseInt(digits, 16) }]
  })
}

/** The kernel prints each 32-bit word in native byte order, which is little-endian wherever Node runs. */
const wordsOf = (hex: string): readonly number[] =>
  (hex.match(/.{8}/g) ?? []).flatMap((word) =>
    (word.match(/../g) ?? []).map((byte) => Number.parseInt(byte, 16)).reverse(),
  )
const fourOf = (hex: string): string => wordsOf(hex).join('.')

function sixOf(hex: string): string {
  const bytes = wordsOf(hex)
  const mapped = bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255
  if (mapped) return bytes.slice(12).join('.')
  const groups = Array.from({ length: 8 }, (_, at) =>
    ((bytes[2 * at] ?? 0) * 256 + (bytes[2 * at + 1] ?? 0)).toString(16),
  )
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}

const reached = (host: string): string => {
  if (host === '0.0.0.0' || host === '*' || host === '') return '127.0.0.1'
  // A socket on every IPv6 address nearly always accepts IPv4 too; both are found then.
  return host === '::' ? '::1' : host
}

async function fromTools(): Promise<readonly OpenPort[]> {
  const { networkConnections } = await loadSystemInformation()
  const all = await networkConnections()
  return all
    .filter(({ protocol, state }) => protocol.startsWith('tcp') && /^listen/i.test(state))
    .map(({ localAddress, localPort }) => ({
      host: reached(bareHost(localAddress).split('%', 1)[0] ?? ''),
      port: Number(localPort),
    }))
    .filter(({ port }) => port > 0)
}
