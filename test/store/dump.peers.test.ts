import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { signIn, startNode, statusAs, tokenOf } from '../support/program/serve-node.ts'
import {
  debianPostgres,
  debianPostgresMissing,
  type PostgresServer,
  startPostgres,
} from '../support/servers/postgres.ts'
import { freshDatabase, storePassword } from '../support/store/data-fixture.ts'
import { peerSuite } from '../support/suite/peer.ts'

/** The lines of docs/serve.md: one command each. */
function documentedLines(): readonly string[] {
  const page = readFileSync(new URL('../../docs/serve.md', import.meta.url), 'utf8')
  const block = /```sh norun\n(pg_dump [\s\S]*?)```/.exec(page)?.[1] ?? ''
  return block.replaceAll('\\\n', '').trim().split('\n')
}

peerSuite(debianPostgresMissing, 'W15 a store in PostgreSQL', () => {
  let server: PostgresServer
  let folder = ''
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'svc-dump-'))
    server = await startPostgres(['max_connections=40'], '', debianPostgres)
  }, 60_000)
  afterAll(async () => {
    await server.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  test('W15 the lines of serve.md dump and restore a database, after which nobody is signed in and everybody can sign in', async () => {
    const [dump = '', load = '', end = ''] = documentedLines()
    expect([dump, load, end].map((line) => line.split(' ')[0])).toEqual(['pg_dump', 'pg_restore', 'psql'])
    const [from, to] = [await freshDatabase(server), await freshDatabase(server)]
    const run = async (line: string, url: string): Promise<void> => {
      const local = line
        .replace('--host=db.example.com', `--host=127.0.0.1 --port=${server.port}`)
        .replace('--dbname=svc', `--dbname=${new URL(url).pathname.slice(1)}`)
      const env = { PATH: `${debianPostgres}:${process.env.PATH}`, PGPASSWORD: storePassword }
      await promisify(execFile)('sh', ['-ec', local], { cwd: folder, env })
    }
    await using node = await startNode({ store: from })
    const token = tokenOf(await signIn(node))
    await run(dump, from)
    expect(await statusAs(node, token)).toBe(200)
    await run(load, to)
    const database = new URL(to).pathname.slice(1)
    expect(await server.query('SELECT "hash" FROM "accessTokens"', database)).toHaveLength(1)
    await run(end, to)
    await using restored = await startNode({ store: to })
    expect(await statusAs(restored, token)).toBe(401)
    expect(await statusAs(restored, tokenOf(await signIn(restored)))).toBe(200)
  }, 120_000)
})
