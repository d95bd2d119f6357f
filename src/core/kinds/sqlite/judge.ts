import { type Asked, evaluateAsked } from '../../database/index.ts'
import { atLeast, atMost, fail, ok, type Result } from '../../engine/index.ts'
import { showBytes, showDuration } from '../../format.ts'
import { said } from '../../net/text.ts'
import type { Disk, Schema, Wal } from './look.ts'
import type { Backup, QuickCheck, RoundTrip } from './probe.ts'
import type { SqliteSettings } from './settings.ts'

export type SqliteLook =
  | { readonly see: 'open' | 'query'; readonly ms: number }
  | Wal
  | Schema
  | Disk
  | RoundTrip
  | QuickCheck
  | { readonly see: 'round trip left out' }
  | { readonly see: 'quick check left out'; readonly bytes: number }
  | (Backup & { readonly ageMs: number })
  | Asked

/** Judges what one look saw. */
export function evaluateLook(seen: SqliteLook, settings: SqliteSettings): Result | readonly Result[] {
  switch (seen.see) {
    case 'open':
      return timed('open', 'opened in', seen.ms, settings)
    case 'query':
      return timed('query', 'SELECT 1 answered in', seen.ms, settings)
    case 'wal':
      return evaluateWal(seen, settings)
    case 'schema':
      return evaluateSchema(seen, settings)
    case 'disk':
      return atLeast({
        check: 'disk',
        what: `${showBytes(seen.freeBytes)} of the disk are free:`,
        value: seen.percent,
        unit: 'percent',
        threshold: settings.diskFree,
      })
    case 'round trip':
      return timed('round trip', 'written, read and taken back in', seen.ms, settings)
    case 'round trip left out':
      return ok('round trip', 'left out: this account may only read the file')
    case 'quick check':
      return evaluateQuickCheck(seen)
    case 'quick check left out':
      return ok('quick check', `left out: ${showBytes(seen.bytes)} without WAL, and writers would wait for it`)
    case 'asked':
      return evaluateAsked(seen)
    case 'backup':
      return evaluateBackup(seen, settings)
  }
}

const timed = (check: string, what: string, ms: number, { latency }: SqliteSettings): Result =>
  atMost({ check, what, value: ms, unit: 'duration', threshold: latency })

function evaluateWal({ mode, bytes }: Wal, { ownStore, walSize }: SqliteSettings): Result {
  if (mode !== 'wal') {
    if (!ownStore) return ok('wal', `journal mode ${mode}: there is no write-ahead log`)
    return fail('wal', 'data', `journal mode ${mode}, and should be wal`, {
      details: ['next: `svc serve` sets it when it opens the store'],
    })
  }
  return atMost({ check: 'wal', what: 'write-ahead log', value: bytes, unit: 'bytes', threshold: walSize })
}

function evaluateSchema({ version, noted }: Schema, { schemaVersion }: SqliteSettings): Result {
  if (noted !== undefined && noted !== version) {
    return fail('schema', 'data', `the header says schema ${version}, the table ${noted}: the store is damaged`)
  }
  if (schemaVersion === undefined || version === schemaVersion) return ok('schema', `schema ${version}`)
  return fail('schema', 'data', `schema ${version}, and should be ${schemaVersion}`, { deployment: true })
}

function evaluateQuickCheck({ problems, ms }: QuickCheck): Result {
  const [first, ...others] = problems.map((problem) => said(problem, 200))
  if (first === undefined) return ok('quick check', `no damage found, in ${showDuration(ms)}`)
  return fail('quick check', 'data', `the database is damaged: ${first}`, {
    details: [...others, 'next: restore it from a backup'],
  })
}

function evaluateBackup(seen: Backup & { readonly ageMs: number }, { backupAge }: SqliteSettings): Result {
  const name = said(seen.name, 128)
  if (seen.bytes === 0) return fail('backup', 'data', `the newest backup, ${name}, is empty (0 bytes)`)
  return atMost({
    check: 'backup',
    what: `the newest, ${name} (${showBytes(seen.bytes)}), is old:`,
    value: Math.max(0, seen.ageMs),
    unit: 'duration',
    threshold: backupAge,
  })
}
