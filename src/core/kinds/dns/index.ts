import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { atLeast, atMost, fail, includes, monitorKind, ok, type Result } from '../../engine/index.ts'
import { count, quoted, said } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import { canonical, dnsFault, recordTexts, recordTypes } from './records.ts'

type Seen =
  | { readonly see: 'answer'; readonly server: string; readonly ms: number; readonly records: readonly string[] }
  | { readonly see: 'records'; readonly server: string; readonly records: readonly string[] }

/** One datagram may get lost: c-ares asks again after this many milliseconds, doubling. */
const firstTryMs = 1_000

/** Asks a name server, past the hosts file and past any cache of this machine. */
export default monitorKind({
  name: 'dns',
  title: 'A name resolves to what it should',
  settings: {
    // Not `name`: that is what a monitor itself is called.
    query: { type: 'text', required: true, doc: 'Name to ask for' },
    type: { type: 'choice', values: recordTypes, default: 'A', doc: 'Record type' },
    server: { type: 'text', doc: 'Name server as ip, ip:port or [ip6]:port; without it those of this machine' },
    latency: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 500, limit: 3_000 },
      doc: 'How long the answer may take',
    },
    expect: {
      type: 'texts',
      doc: 'Records that the answer must hold: an address, a name, "10 mail.example.com" (MX), "10 5 443 host" (SRV), a text',
    },
    exact: { type: 'flag', default: false, doc: 'The answer holds what `expect` lists and nothing else' },
    records: { type: 'threshold', unit: 'count', doc: 'How many records the answer holds at least' },
  },
  checks: [
    { name: 'answer', depth: 'Basic', doc: 'The server answers with records' },
    { name: 'latency', depth: 'Basic', doc: 'The answer comes in time' },
    { name: 'expected', depth: 'Standard', doc: 'With `expect`: the records are those expected' },
    { name: 'records', depth: 'Standard', doc: 'With `records`: there are enough of them' },
  ],
  target: (settings) => (settings.server === undefined ? {} : { host: settings.server }),
  async *observe(settings, context): AsyncGenerator<Seen> {
    const { query: name, type, server } = settings
    const resolver = new Resolver({ timeout: firstTryMs, tries: 4 })
    if (server !== undefined) {
      try {
        resolver.setServers([isIP(server) === 6 ? `[${server}]` : server])
      } catch {
        throw new ProbeError('data', `server ${quoted(server, 64)} is none of ip, ip:port and [ip6]:port`)
      }
    }
    const servers = resolver.getServers().join(', ')
    context.step('answer', servers)
    const cancel = (): void => resolver.cancel()
    context.signal.addEventListener('abort', cancel, { once: true })
    const start = context.now()
    try {
      const records = recordTexts(type, await resolver.resolve(name, type))
      yield { see: 'answer', server: servers, ms: context.now() - start, records }
      if (includes(context.mode, 'Standard')) yield { see: 'records', server: servers, records }
    } catch (error) {
      if (context.signal.aborted) throw error
      throw dnsFault(error as NodeJS.ErrnoException, { name, type, servers, afterMs: context.now() - start })
    } finally {
      context.signal.removeEventListener('abort', cancel)
      resolver.cancel()
    }
  },
  evaluate: (seen, settings) => {
    const { server, records } = seen
    const { query: name, type } = settings
    const shown = listed(records)
    if (seen.see === 'answer') {
      const more: Partial<Result> = {
        address: server,
        measurement: { value: records.length, unit: 'count' },
        details: records.map((record) => said(record)),
      }
      return [
        records.length > 0
          ? ok('answer', `${said(name, 128)} ${type} is ${shown}`, more)
          : fail('answer', 'dns', `${server} answered without any ${type} record of ${said(name, 128)}`, more),
        atMost({
          check: 'latency',
          what: `${server} answered in`,
          value: seen.ms,
          unit: 'duration',
          threshold: settings.latency,
          address: server,
        }),
      ]
    }
    const results = []
    if (settings.expect !== undefined) {
      const wanted = settings.expect.map((record) => canonical(type, record))
      const found = records.map((record) => canonical(type, record))
      const missing = settings.expect.filter((_, index) => !found.includes(wanted[index] ?? ''))
      const extra = settings.exact ? records.filter((_, index) => !wanted.includes(found[index] ?? '')) : []
      const wrong = [
        ...(missing.length > 0 ? [`lacks ${listed(missing)}`] : []),
        ...(extra.length > 0 ? [`has ${listed(extra)} besides`] : []),
      ]
      const more = { address: server }
      results.push(
        wrong.length === 0
          ? ok('expected', `${said(name, 128)} ${type} is as expected`, more)
          : fail(
              'expected',
              'data',
              `${said(name, 128)} ${type} at ${server} ${wrong.join(' and ')}; it is ${shown}`,
              more,
            ),
      )
    }
    if (settings.records !== undefined) {
      const threshold = settings.records
      const what = `${said(name, 128)} ${type} records:`
      results.push(
        atLeast({ check: 'records', what, value: records.length, unit: 'count', threshold, address: server }),
      )
    }
    return results
  },
})

/** A few records; the rest is counted. */
function listed(records: readonly string[]): string {
  const first = records.slice(0, 4).map((record) => said(record, 80))
  const rest = records.length - first.length
  return `${first.join(', ') || 'nothing'}${rest > 0 ? ` and ${count(rest, 'more', 'more')}` : ''}`
}
