import { execFileSync } from 'node:child_process'
import { chownSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { asServer, findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

const program = findProgram('named')
const signer = findProgram('dnssec-signzone')
export const bindMissing =
  program === undefined || signer === undefined ? 'BIND (named, dnssec-signzone) is not installed' : undefined

export type Bind = Running & {
  readonly port: number
  /** As the setting `server` takes it. */
  readonly server: string
  /** Its statistics, in XML over HTTP. */
  readonly statisticsPort: number
  /** The key that signs the keys of a signed zone, as a DNSKEY record: the trust anchor of a resolver. */
  readonly trustAnchor: string | undefined
  readonly remove: () => Promise<void>
}

export type BindOptions = {
  /** Of the zone; default 1. */
  readonly serial?: number
  /** Further lines of the zone `svc.test`. */
  readonly records?: readonly string[]
  /** Signs the zone with real keys, for this many days from now. Negative: the signatures have expired. */
  readonly signedForDays?: number
  /** How many days before now the signatures become valid; default 30. */
  readonly signedSinceDays?: number
  /** Serves no zone itself, but answers what it has asked the server of this port. */
  readonly forwardsTo?: number
  /** A second zone, whose file is missing. */
  readonly brokenZone?: string
  /** Its log names each query. */
  readonly queryLog?: boolean
}

/**
 * A real BIND on a free port of 127.0.0.1, authoritative for `svc.test`. Its faults: `dangling` is an alias of a name
 * that does not exist, `far.svc.test` one in another zone that it serves too, and `empty` one of a name without an
 * address.
 */
export async function startBind({
  serial = 1,
  records = [],
  signedForDays,
  signedSinceDays = 30,
  brokenZone,
  forwardsTo,
  queryLog = false,
}: BindOptions = {}): Promise<Bind> {
  const folder = serverFolder('bind')
  const [port, statisticsPort] = [await freePort(), await freePort()]
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text, { mode: 0o644 })
  const zone = (lines: readonly string[]): string =>
    ['$TTL 60', `@ SOA ns1.svc.test. admin.svc.test. ${serial} 3600 900 1209600 60`, ...lines, ''].join('\n')
  write(
    'svc.zone',
    zone([
      '@ NS ns1.svc.test.',
      'ns1 A 127.0.0.1',
      'www A 192.0.2.1',
      'dangling CNAME gone.svc.test.',
      'chain CNAME dangling',
      'empty CNAME texts',
      'texts TXT "no address"',
      ...records,
    ]),
  )
  if (signedForDays !== undefined) sign(folder, signedForDays, signedSinceDays)
  const file = signedForDays === undefined ? 'svc.zone' : 'svc.zone.signed'
  mkdirSync(join(folder, 'work'), { mode: 0o755 })
  if (asServer.uid !== undefined) chownSync(join(folder, 'work'), asServer.uid, asServer.gid)
  write(
    'named.conf',
    `options {
  directory "${folder}/work";
  pid-file none;
  querylog ${queryLog ? 'yes' : 'no'};
  session-keyfile none;
  listen-on port ${port} { 127.0.0.1; };
  listen-on-v6 { none; };
  recursion ${forwardsTo === undefined ? 'no' : 'yes'};
  allow-recursion { any; };
  allow-query-cache { any; };
  allow-query { any; };
  dnssec-validation no;
};
controls { };
statistics-channels { inet 127.0.0.1 port ${statisticsPort} allow { 127.0.0.1; }; };
${
  forwardsTo === undefined
    ? `zone "svc.test" { type primary; file "${folder}/${file}"; };`
    : `zone "svc.test" { type forward; forward only; forwarders { 127.0.0.1 port ${forwardsTo}; }; };`
}
${brokenZone === undefined ? '' : `zone "${brokenZone}" { type primary; file "${folder}/missing"; };`}
`,
  )
  const running = await run(
    program ?? '',
    ['-g', '-c', join(folder, 'named.conf')],
    /all zones loaded|some zones failed to load/,
  )
  return {
    ...running,
    port,
    server: `127.0.0.1:${port}`,
    statisticsPort,
    trustAnchor: signedForDays === undefined ? undefined : keySigningKey(folder),
    remove: async () => {
      await running.stop('SIGTERM')
      remove(folder)
    },
  }
}

/** Flags 257: a key that signs keys (RFC 4034, 2.1.1). */
const keySigningKey = (folder: string): string | undefined =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.key'))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'))
    .find((line) => /\sDNSKEY 257 /.test(line))

/** `YYYYMMDDHHMMSS` in UTC, as dnssec-signzone takes it. */
const stamp = (days: number): string =>
  new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 19).replaceAll(/\D/g, '')

function sign(folder: string, forDays: number, sinceDays: number): void {
  const tool = (name: string, ...args: readonly string[]): string =>
    execFileSync(findProgram(name) ?? name, args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  tool('dnssec-keygen', '-q', '-a', 'ECDSAP256SHA256', '-f', 'KSK', 'svc.test')
  tool('dnssec-keygen', '-q', '-a', 'ECDSAP256SHA256', 'svc.test')
  tool(
    'dnssec-signzone',
    ...['-S', '-P', '-q', '-o', 'svc.test', '-s', stamp(-sinceDays), '-e', stamp(forDays), '-f', 'svc.zone.signed'],
    'svc.zone',
  )
}
