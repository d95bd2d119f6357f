/**
 * Writes docs/examples: every server type at work, by running the built program against real peers.
 *
 *     npm run build && node tools/examples.ts [type …]
 *
 * It needs the servers that the tests use (PostgreSQL, MariaDB, nginx, vsftpd …); a type whose peers
 * are not installed keeps the page that it has.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { agents } from './examples/agents.ts'
import { app } from './examples/app.ts'
import { batch } from './examples/batch.ts'
import type { Example } from './examples/example.ts'
import { ftp } from './examples/ftp.ts'
import { ftpApi } from './examples/ftp-api.ts'
import { identity } from './examples/identity.ts'
import { mongo } from './examples/mongo.ts'
import { sql } from './examples/sql.ts'
import { stage } from './examples/stage.ts'
import { carbonExample, qcExample, vantageExample } from './examples/transcoders.ts'
import { asgVast, msgVast } from './examples/vast.ts'

const folder = new URL('../docs/examples/', import.meta.url).pathname
const examples: readonly Example[] = [
  app,
  sql,
  ftpApi,
  ftp,
  batch,
  identity,
  qcExample,
  vantageExample,
  carbonExample,
  msgVast,
  asgVast,
  mongo,
  agents,
]
const marker = '<!-- Written by tools/examples.ts; changes here are lost. -->'

async function pageOf(example: Example): Promise<string> {
  const on = stage(example.type)
  try {
    await example.show(on)
    return [
      marker,
      '',
      `# ${example.type}: ${lower(example.title)}`,
      '',
      `**Taken to stand for.** ${example.meaning}`,
      '',
      `**Run against.** ${example.peers}`,
      '',
      on.page(),
    ].join('\n')
  } finally {
    on.end()
  }
}
const lower = (title: string): string => title.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase())

/** The index: it needs no peer. */
const index = (): string =>
  [
    marker,
    '',
    '# Every server type at work',
    '',
    'Each page shows a `svc.yaml`, what it would run, a run in which all is well, and runs in which something was',
    'broken on purpose. `npm run examples` writes them by running the built program on a terminal of 100 columns,',
    'without colour, against the peers that a page names. Ports, folders, measured milliseconds and dates of',
    'certificates are those of no machine: they are replaced by others, so that the pages stay the same. Lines below',
    '`Correlation` repeat the headline where an answer is longer than a screen.',
    '',
    'What was run on the real thing and what on a simulated one is told for every kind and type in',
    '[tested.md](../tested.md). How `svc.yaml` is written: [svc.yaml.md](../svc.yaml.md).',
    '',
    '| type | taken to stand for | run against |',
    '|---|---|---|',
    ...examples.map(({ type, title, peers }) => `| [${type}](${type}.md) | ${title} | ${peers} |`),
    '',
  ].join('\n')

const names = process.argv.slice(2)
const unknown = names.filter((name) => examples.every(({ type }) => type !== name))
if (unknown.length > 0) throw new Error(`no such type: ${unknown.join(', ')}`)
mkdirSync(folder, { recursive: true })
writeFileSync(join(folder, 'README.md'), index())
for (const example of examples) {
  if (names.length > 0 && !names.includes(example.type)) continue
  if (example.missing !== undefined) {
    process.stderr.write(`${example.type}: ${example.missing}; its page stays\n`)
    continue
  }
  writeFileSync(join(folder, `${example.type}.md`), await pageOf(example))
  process.stderr.write(`${example.type}: written\n`)
}
