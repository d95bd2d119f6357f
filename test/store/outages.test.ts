import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { Fault, FileStoreOutage } from '../../src/core/base/errors.ts'
import { fileSystemOf } from '../../src/core/base/files/index.ts'
import { openData, prepareStore, type UsedStores } from '../../src/core/store/index.ts'
import { openingFault } from '../../src/core/store/open.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

let folder = ''
let store = ''
beforeEach(() => {
  folder = temporaryFolder()
  store = join(folder, 'store', 'svc.db')
})

const system = (code: string): Error => Object.assign(new Error(code), { code, syscall: 'open' })
const sqlite = (errcode: number): Error => Object.assign(new Error(String(errcode)), { errcode })

describe('W16 what opening an embedded store may report (simulated)', () => {
  const outages = [
    ...['ENOSPC', 'EDQUOT', 'EROFS', 'EIO', 'ESTALE'].map((code) => [code, system(code)] as const),
    // BUSY, LOCKED, IOERR_WRITE and FULL.
    ...[5, 6, 778, 13].map((code) => [`SQLite ${code}`, sqlite(code)] as const),
  ]
  test.each(outages)('W16 %s is an outage: a command ends with 12, and svc serve tries again', (_, error) => {
    const fault = openingFault(store, error)
    expect(fault).toBeInstanceOf(FileStoreOutage)
    expect(fault.exitCode).toBe(12)
    // Callers may see the reason, and not the place.
    expect((fault as FileStoreOutage).why).not.toContain(folder)
    expect(openingFault(store, new Fault('Local', 'cannot be accessed', { cause: error }))).toBeInstanceOf(
      error instanceof Error && 'code' in error ? FileStoreOutage : Fault,
    )
  })

  const mistakes = [
    ...['EACCES', 'EPERM', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG'].map((code) => [code, system(code)] as const),
    // READONLY and CANTOPEN where the file system can be written, CORRUPT and NOTADB.
    ...[8, 14, 11, 26].map((code) => [`SQLite ${code}`, sqlite(code)] as const),
  ]
  test.each(mistakes)('W16 %s is none where the file system can be written: svc serve ends with 12', (_, error) => {
    const fault = openingFault(store, error)
    expect(fault).not.toBeInstanceOf(FileStoreOutage)
    expect([fault.fault, fault.exitCode]).toEqual(['Local', 12])
  })

  test('W16 the message names the mount point and the type of the file system', {
    skip: !existsSync('/proc/self'),
  }, () => {
    expect(fileSystemOf('/proc/self')).toMatch(/^\/proc \(proc from /)
    expect(openingFault('/proc/none/svc.db', system('EROFS')).details.hints).toEqual([
      expect.stringMatching(/^The file system is \/proc \(proc from /),
    ])
  })
})

describe('W16 a store that svc serve has used, and whose file is missing', () => {
  const note = (): string => join(folder, 'note')
  const used: UsedStores = {
    noteOf: async () => (existsSync(note()) ? note() : undefined),
    note: async () => writeFileSync(note(), ''),
  }

  test('W16 is gone: nothing makes it again, until the note that the message names is removed', async () => {
    await used.note(store)
    const refused = await openData({ store, create: true, usedStores: used }).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(FileStoreOutage)
    expect((refused as Fault).details.hints?.at(-1)).toBe(`To start with an empty store instead: rm ${note()}`)
    expect(await prepareStore(store, used)).toContain('is gone')
    expect(existsSync(join(folder, 'store'))).toBe(false)
    rmSync(note())
    await (await openData({ store, create: true, usedStores: used })).close()
    expect(existsSync(store)).toBe(true)
  })

  test('W16 a store that is there needs no note, and a place of notes that does not answer keeps one from being made', async () => {
    const silent: UsedStores = { noteOf: () => Promise.reject(system('EIO')), note: async () => {} }
    expect(await openData({ store, create: true, usedStores: silent }).catch((error: unknown) => error)).toBeInstanceOf(
      FileStoreOutage,
    )
    await (await openData({ store, create: true })).close()
    await (await openData({ store, create: true, usedStores: silent })).close()
  })
})
