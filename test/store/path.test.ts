import { describe, expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { openStore, shownStore, storeKind, storePathFor } from '../../src/core/store/index.ts'

function faultOf(run: () => unknown): Fault {
  try {
    run()
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

describe('the location of the store', () => {
  test('Linux: under XDG_DATA_HOME, else under ~/.local/share; a relative XDG_DATA_HOME is ignored', () => {
    expect(storePathFor({}, 'linux', '/home/ann')).toBe('/home/ann/.local/share/svc/svc.db')
    expect(storePathFor({ XDG_DATA_HOME: '/data' }, 'linux', '/home/ann')).toBe('/data/svc/svc.db')
    expect(storePathFor({ XDG_DATA_HOME: 'data' }, 'linux', '/home/ann')).toBe('/home/ann/.local/share/svc/svc.db')
    expect(storePathFor({ XDG_DATA_HOME: '' }, 'linux', '/home/ann')).toBe('/home/ann/.local/share/svc/svc.db')
  })
  test('macOS and Windows: the platform’s folder for an account’s data', () => {
    expect(storePathFor({ XDG_DATA_HOME: '/data' }, 'darwin', '/Users/ann')).toBe(
      '/Users/ann/Library/Application Support/svc/svc.db',
    )
    expect(storePathFor({ LOCALAPPDATA: 'D:\\Local' }, 'win32', 'C:\\Users\\ann')).toBe('D:\\Local\\svc\\svc.db')
    expect(storePathFor({}, 'win32', 'C:\\Users\\ann')).toBe('C:\\Users\\ann\\AppData\\Local\\svc\\svc.db')
  })
  test('SVC_STORE names the file and overrides SVC_HOME, which names its folder', () => {
    expect(storePathFor({ SVC_STORE: '/srv/x.db', SVC_HOME: '/h' }, 'linux', '/home/ann')).toBe('/srv/x.db')
    expect(storePathFor({ SVC_HOME: '/h' }, 'darwin', '/Users/ann')).toBe('/h/store/svc.db')
    expect(storePathFor({ SVC_STORE: 'E:\\svc\\x.db' }, 'win32', 'C:\\Users\\ann')).toBe('E:\\svc\\x.db')
    expect(storePathFor({ SVC_HOME: 'E:\\svc' }, 'win32', 'C:\\Users\\ann')).toBe('E:\\svc\\store\\svc.db')
  })
  test.each([
    ['SVC_STORE', 'x.db'],
    ['SVC_STORE', './x.db'],
    ['SVC_STORE', ':memory:'],
    ['SVC_HOME', 'here'],
  ])('a relative %s (%s) is refused: it would name another place in each folder', (name, value) => {
    const fault = faultOf(() => storePathFor({ [name]: value }, 'linux', '/home/ann'))
    expect(fault.fault).toBe('Local')
    expect(fault.message).toMatch(new RegExp(`${name}\\)? must be the absolute path`))
  })
  test('a postgres:// URL is a kind of store, and is shown without password and parameters', () => {
    const url = 'postgres://svc:hunter2@db.internal:5433/svc?sslmode=disable'
    expect(storePathFor({ SVC_STORE: url, SVC_HOME: '/h' }, 'linux', '/home/ann')).toBe(url)
    expect([storeKind(url), storeKind('postgresql://db/x'), storeKind('/x/svc.db')]).toEqual([
      'postgres',
      'postgres',
      'sqlite',
    ])
    expect(shownStore(url)).toBe('postgres://svc@db.internal:5433/svc')
    expect(shownStore('postgres://svc:hunter%2@[db/x')).not.toContain('hunter')
    expect(shownStore('/x/svc.db')).toBe('/x/svc.db')
    const fault = faultOf(() => openStore({ path: url, create: true }))
    expect(fault.fault).toBe('Local')
    expect(JSON.stringify([fault.message, fault.details])).not.toContain('hunter2')
  })
  test('any other URL is refused, and a Windows drive does not count as one', () => {
    expect(faultOf(() => storePathFor({ SVC_STORE: 'file:///x.db' }, 'linux', '/h')).message).toContain(
      'not a file: URL',
    )
    expect(storePathFor({ SVC_STORE: 'C:\\x\\svc.db' }, 'win32', 'C:\\Users\\ann')).toBe('C:\\x\\svc.db')
  })
})
