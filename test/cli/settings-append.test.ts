import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sentFile } from '../../src/cli/serve/sent-file.ts'
import { SentWithoutStore } from '../../src/core/service/notify/sent-without-store.ts'
import type { NoticeItem } from '../../src/core/watch/outbox/index.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const day = 86_400_000
const itemOf = (incident: string): NoticeItem => ({
  id: incident,
  subject: { key: 'Sql/orders', type: 'Sql', monitor: 'orders', check: 'connect' },
  what: 'begin',
  level: 'failed',
  incident,
  beganAt: 0,
  observedAt: 0,
  text: 'it is down',
})

/** The file of a node in a home of its own, and processes that use it. */
function noted() {
  const home = temporaryFolder()
  const logs: string[] = []
  let now = 10 * day
  const started = (store = 'store-1'): SentWithoutStore =>
    new SentWithoutStore({
      file: sentFile({ SVC_HOME: home, HOME: home })('a'),
      node: 'a',
      storeId: async () => store,
      now: () => now,
      log: ({ msg }) => void logs.push(msg),
    })
  const folder = join(home, 'state')
  return {
    folder,
    file: join(folder, 'told-a.jsonl'),
    logs,
    started,
    later: (ms: number) => {
      now += ms
    },
    incidentsOf: async (sent: SentWithoutStore): Promise<readonly string[]> =>
      (await sent.rows()).flatMap(({ row }) =>
        [...(row?.others ?? []), ...(row?.attempt ? [row.attempt] : [])].map((one) => one.incident),
      ),
  }
}

const isRoot = process.getuid?.() === 0
/** The ways in which the file, or its folder, is one that svc does not write. */
const refusals: readonly {
  readonly what: string
  readonly reason: RegExp
  readonly make: (f: { file: string; folder: string }) => void
}[] = [
  {
    what: 'a file that others may read',
    reason: /told-a\.jsonl is accessible to other accounts \(mode 0644\)/,
    make: ({ file }) => writeFileSync(file, '', { mode: 0o644 }),
  },
  {
    what: 'a link to a file of this account',
    reason: /told-a\.jsonl is a symbolic link, which svc does not/,
    make: ({ file, folder }) => {
      writeFileSync(join(folder, 'other'), '', { mode: 0o600 })
      symlinkSync(join(folder, 'other'), file)
    },
  },
  { what: 'a folder in its place', reason: /told-a\.jsonl/, make: ({ file }) => mkdirSync(file, { mode: 0o700 }) },
  {
    what: 'a folder that others may enter',
    reason: /state is accessible to other accounts \(mode 0755\)/,
    make: ({ folder }) => chmodSync(folder, 0o755),
  },
  ...(isRoot
    ? [
        {
          what: 'a file of another account',
          reason: /told-a\.jsonl belongs to another account \(uid 65534/,
          make: ({ file }: { file: string }) => {
            writeFileSync(file, '', { mode: 0o600 })
            chownSync(file, 65_534, 65_534)
          },
        },
      ]
    : []),
]

describe('the file of what a process sends without its store', () => {
  test.each(refusals)(
    'W23 is not written where there is $what, and the log says why, once',
    async ({ reason, make }) => {
      const own = noted()
      mkdirSync(own.folder, { mode: 0o700 })
      make(own)
      const before = existsSync(own.file) && lstatSync(own.file).isFile() ? readFileSync(own.file, 'utf8') : ''
      const sent = own.started()
      await sent.note('pager', [itemOf('i-1')])
      await sent.note('pager', [itemOf('i-2')])
      expect(own.logs).toEqual([expect.stringMatching(reason)])
      expect(own.logs[0]).toContain('does not outlive this process')
      if (existsSync(own.file) && lstatSync(own.file).isFile()) expect(readFileSync(own.file, 'utf8')).toBe(before)
      if (existsSync(join(own.folder, 'other'))) expect(readFileSync(join(own.folder, 'other'), 'utf8')).toBe('')
    },
  )

  test('W23 has mode 600 in a folder of mode 700, and is gone once the store has it', async () => {
    const own = noted()
    const sent = own.started()
    await sent.note('pager', [itemOf('i-1')])
    expect([lstatSync(own.file).mode & 0o777, lstatSync(own.folder).mode & 0o777]).toEqual([0o600, 0o700])
    expect(await own.incidentsOf(own.started())).toEqual(['i-1'])
    await sent.rows()
    await sent.forget()
    expect(existsSync(own.file)).toBe(false)
    expect(own.logs).toEqual([])
  })

  test.each([
    ['10,000 lines', 1, 9_999],
    ['4 MiB', 100_000, 42],
  ])('W23 has at most %s, with one warning, and keeps what it had', async (_, length, times) => {
    const own = noted()
    const sent = own.started()
    const long = { ...itemOf('i'), incident: 'i'.repeat(length) }
    await sent.note(
      'pager',
      Array.from({ length: times - 1 }, () => long),
    )
    const most = own.started()
    for (let more = 0; more < 4; more += 1) await most.note('pager', [long])
    expect(own.logs).toEqual([expect.stringContaining('it is full')])
    const text = readFileSync(own.file, 'utf8')
    expect(text.split('\n').length).toBeLessThanOrEqual(10_001)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4 * 1_024 * 1_024)
    expect(await own.incidentsOf(own.started())).toHaveLength(1)
  })

  test('W23 passes over the lines of another store, damaged and old ones, counts them, and goes on after them', async () => {
    const own = noted()
    await own.started('store-2').rows()
    const other = own.started('store-2')
    await other.rows()
    await other.note('pager', [itemOf('of-another-store')])
    writeFileSync(own.file, `${readFileSync(own.file, 'utf8')}{"receiver":"pa\n7\n`, { mode: 0o600 })
    const before = own.started()
    await before.rows()
    await before.note('pager', [itemOf('old')])
    own.later(8 * day)
    // This one has not reached its store.
    await own.started().note('pager', [itemOf('young')])
    own.logs.length = 0
    expect(await own.incidentsOf(own.started())).toEqual(['young'])
    expect(own.logs).toEqual([expect.stringContaining('4 lines are passed over')])
  })
})
