import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import {
  type AccountRules,
  accountFinder,
  type Ends,
  type FindAccounts,
  findAccounts,
  maxAccountMs,
  maxTableBytes,
  peerProcesses,
  searchTable,
} from '../../src/core/server/peer-account.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

type Connection = Socket & AsyncDisposable & { readonly child: ChildProcess }

/** Accounts without a name, a home or a password. */
const [ours, another] = [23_456, 23_457]
const missing = process.getuid?.() === 0 ? undefined : 'only root can start processes of other accounts'

suiteWith(missing, 'the account of a process that connects', () => {
  /** The server's side of a connection that a process of an account makes. */
  async function connection(uid: number, host: string, listensOn = host): Promise<Connection> {
    const server = createServer().listen(0, listensOn)
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const program = `require('node:net').connect(${port}, '${host}').resume()`
    const child: ChildProcess = spawn(process.execPath, ['-e', program], { uid, gid: uid, stdio: 'ignore' })
    const [socket] = (await once(server, 'connection')) as [Socket]
    socket.on('error', () => {})
    return Object.assign(socket, {
      child,
      async [Symbol.asyncDispose]() {
        child.kill('SIGKILL')
        socket.destroy()
        server.close()
      },
    })
  }

  test.each([
    ['127.0.0.1', '127.0.0.1'],
    ['127.0.0.7', '127.0.0.7'],
    ['127.0.0.1', '::'],
    ['::1', '::1'],
    ['::ffff:127.0.0.1', '127.0.0.1'],
    ['::ffff:127.0.0.1', '::'],
  ])('S8 a connection to %s of a server on %s shows its account', async (host, listensOn) => {
    await using socket = await connection(ours, host, listensOn)
    expect(await accountFinder(findAccounts)(socket)).toBe(ours)
  })

  test('S8 S11 a connection whose process has ended has no account, and not that of root', async () => {
    await using socket = await connection(65_534, '127.0.0.1')
    const { remoteAddress, remotePort, localAddress, localPort } = socket
    const ends = { remoteAddress, remotePort, localAddress, localPort } as Ends
    expect(await accountFinder(findAccounts)(ends)).toBe(65_534)
    socket.child.kill('SIGKILL')
    await once(socket.child, 'exit')
    expect(await accountFinder(findAccounts)(ends)).toBeUndefined()
    expect(await peer(ends, { own: ours }).reads()).toBe(false)
  })

  test('S8 root is never the own account, and neither is the account that stands for unknown ones', async () => {
    await using ofRoot = await connection(0, '127.0.0.1')
    expect(await peer(ofRoot, { own: 0 }).isOwn()).toBe(false)
    await using ofNobody = await connection(65_534, '127.0.0.1')
    expect(await peer(ofNobody, { own: 65_534 }).isOwn()).toBe(false)
    await using ofOurs = await connection(ours, '127.0.0.1')
    expect(await peer(ofOurs, { own: ours }).isOwn()).toBe(true)
  })

  test('S11 processes of root, of the account of svc and of serve.localAccounts read details, others do not', async () => {
    await using ofRoot = await connection(0, '127.0.0.1')
    await using ofOurs = await connection(ours, '127.0.0.1')
    await using ofNobody = await connection(65_534, '127.0.0.1')
    const read = (rules: Partial<AccountRules>): Promise<boolean[]> =>
      Promise.all([ofRoot, ofOurs, ofNobody].map(async (socket) => await peer(socket, rules).reads()))
    expect(await read({ own: another })).toEqual([true, false, false])
    expect(await read({ own: ours })).toEqual([true, true, false])
    expect(await read({ own: another, localAccounts: new Set([ours]) })).toEqual([true, true, false])
    // Everybody who has no counterpart in this user namespace looks like this account.
    expect(await read({ own: 65_534 })).toEqual([true, false, false])
    expect(await read({ own: 65_534, localAccounts: new Set([65_534]) })).toEqual([true, false, true])
    expect(await read({ own: ours, trustLocal: false })).toEqual([false, false, false])
  })
})

const peer = (socket: Ends, rules: Partial<AccountRules>) =>
  peerProcesses({
    find: accountFinder(findAccounts),
    own: undefined,
    localAccounts: new Set(),
    trustLocal: true,
    ...rules,
  })(socket)

test('S8 a connection that the table does not list has no account, reads no details and is not exempt', async () => {
  const find = accountFinder(async () => new Map())
  expect(await find(ends)).toBeUndefined()
  const rules = { find, own: ours, localAccounts: new Set([ours]), trustLocal: true }
  const process = peerProcesses(rules)(ends)
  expect([await process.reads(), await process.isOwn()]).toEqual([false, false])
})

test('S11 where nothing can tell the account, serve.trustLocal decides what a connection on loopback reads', () => {
  const rules = { find: undefined, own: undefined, localAccounts: new Set<number>() }
  expect(peerProcesses({ ...rules, trustLocal: true })(ends).reads()).toBe(true)
  expect(peerProcesses({ ...rules, trustLocal: false })(ends).reads()).toBe(false)
})

test('S11 the account is looked up once for each connection, and known without a wait from then on', async () => {
  let searches = 0
  const find = accountFinder(async (keys) => {
    searches += 1
    return new Map([...keys].map((one) => [one, ours]))
  })
  const processOf = peerProcesses({ find, own: ours, localAccounts: new Set(), trustLocal: true })
  expect(await processOf(ends).reads()).toBe(true)
  expect([processOf(ends).reads(), await processOf(ends).isOwn(), await processOf(ends).account()]).toEqual([
    true,
    true,
    ours,
  ])
  expect(searches).toBe(1)
})

const ends = { remoteAddress: '127.0.0.1', remotePort: 41_394, localAddress: '127.0.0.1', localPort: 8_080 }
const key = '0100007F:A1B2 0100007F:1F90'
const line = (at: number, both: string, uid: number): string =>
  `${String(at).padStart(4)}: ${both} 01 00000000:00000000 00:00000000 00000000 ${String(uid).padStart(5)}        0 123456 1 0000000000000000 20 4 30 10 -1`.padEnd(
    149,
  )

test.each([
  ['192.0.2.7', '192.0.2.1'],
  ['127.0.0.1', '192.0.2.1'],
  ['fe80::1%eth0', '::1'],
  ['', ''],
])('S8 a connection from %s to %s is not looked up', async (remoteAddress, localAddress) => {
  const find: FindAccounts = async () => {
    throw new Error('looked up')
  }
  expect(await accountFinder(find)({ ...ends, remoteAddress, localAddress })).toBeUndefined()
})

test('S11 after a lookup that failed, the next request looks again', async () => {
  let searches = 0
  const find = accountFinder(async (keys) => {
    searches += 1
    if (searches === 1) throw new Error('EMFILE')
    return new Map([...keys].map((one) => [one, ours]))
  })
  const process = peerProcesses({ find, own: ours, localAccounts: new Set(), trustLocal: true })(ends)
  expect([await process.reads(), await process.reads(), searches]).toEqual([false, true, 2])
})

test('S8 where the table cannot be read, the caller is a stranger', async () => {
  const account = accountFinder(async () => {
    throw new Error('EMFILE')
  })
  expect([await account(ends), await account(ends)]).toEqual([undefined, undefined])
})

test('S8 one search at a time serves all connections that wait, and begins after they do', async () => {
  const searches: { readonly keys: readonly string[]; readonly finish: () => void }[] = []
  const account = accountFinder((keys) => {
    const { promise, resolve } = Promise.withResolvers<ReadonlyMap<string, number>>()
    searches.push({ keys: [...keys], finish: () => resolve(new Map([...keys].map((one) => [one, ours]))) })
    return promise
  })
  const turn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve))
  const first = account(ends)
  await until(() => searches.length > 0)
  const others = Array.from({ length: 1_000 }, (_, i) => account({ ...ends, remotePort: 50_000 + i }))
  await turn()
  expect(searches.map(({ keys }) => keys)).toEqual([[key]])
  searches[0]?.finish()
  expect(await first).toBe(ours)
  await until(() => searches.length > 1)
  expect(searches.map(({ keys }) => keys.length)).toEqual([1, 1_000])
  searches[1]?.finish()
  expect(new Set(await Promise.all(others))).toEqual(new Set([ours]))
})

test('S8 S11 a connection is found behind all that the kernel keeps in TIME_WAIT, and not further down than 64 MiB', async () => {
  const folder = temporaryFolder()
  const other = `${line(0, '0100007F:A1B3 0200007F:1F90', another)}\n`
  const accountBehind = async (sockets: number): Promise<number | undefined> => {
    const file = join(folder, 'tcp')
    writeFileSync(file, '  sl  local_address …\n')
    appendFileSync(file, Buffer.alloc(sockets * other.length, other))
    appendFileSync(file, `${line(sockets, key, ours)}\n`)
    const accounts = new Map<string, number>()
    await searchTable(file, new Set([key]), accounts)
    return accounts.get(key)
  }
  expect(await accountBehind(0)).toBe(ours)
  expect(await accountBehind(262_144)).toBe(ours)
  expect(await accountBehind(Math.ceil(maxTableBytes / other.length))).toBeUndefined()
})

/** A table as the kernel hands it out: 27 sockets with each read, and nothing else to wait for. */
function kernelTable(sockets: number, last: string) {
  const other = `${line(0, '0100007F:A1B3 0200007F:1F90', another)}\n`
  const text = `${other.repeat(sockets)}${last}\n`
  let at = 0
  let reads = 0
  return {
    reads: () => reads,
    read: (_file: number, chunk: Buffer): number => {
      reads += 1
      const bytes = chunk.write(text.slice(at, at + 27 * other.length), 'latin1')
      at += bytes
      return bytes
    },
  }
}

test('S8 a search among 30,000 sockets reads in a few turns of the event loop, not one for each read', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'tcp')
  writeFileSync(file, '')
  const table = kernelTable(30_000, line(30_000, key, ours))
  const accounts = new Map<string, number>()
  let turns = 0
  let ends = false
  const count = (): void => {
    turns += 1
    if (!ends) setImmediate(count)
  }
  setImmediate(count)
  onTestFinished(() => {
    ends = true
  })

  let spentMs = 0
  const spent = (ms: number): void => {
    spentMs += ms
  }
  await searchTable(file, new Set([key]), accounts, { read: table.read, spent })
  ends = true
  expect(accounts.get(key)).toBe(ours)
  expect(table.reads()).toBeGreaterThan(1_100)
  expect(turns).toBeLessThan(table.reads() / 5)
  expect(spentMs).toBeGreaterThan(0)
})

test.each([
  ['1 ms of this thread', 1, 2],
  ['a minute of this thread', 60_000, 1],
])(
  'S8 a search that used %s in 200 ms is followed by a pause for what it used alone',
  async (_what, usedMs, expected) => {
    let searches = 0
    const account = accountFinder(async (_keys, spent) => {
      searches += 1
      await new Promise((resolve) => setTimeout(resolve, 200))
      spent(usedMs)
      return new Map()
    })
    await account(ends)
    void account(ends)
    for (let turns = 0; turns < 5; turns += 1) await new Promise((resolve) => setImmediate(resolve))
    expect(searches).toBe(expected)
  },
)

test('S11 a caller whose account is not known after 500 ms is a stranger, and no longer once the search has ended', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())

  const { promise, resolve } = Promise.withResolvers<number | undefined>()
  let [searches, late] = [0, 0]
  const process = peerProcesses({
    find: () => {
      searches += 1
      return promise
    },
    own: ours,
    localAccounts: new Set(),
    trustLocal: true,
    late: () => {
      late += 1
    },
  })(ends)
  const first = process.reads()
  await vi.advanceTimersByTimeAsync(maxAccountMs - 1)
  expect(await Promise.race([first, 'waits'])).toBe('waits')
  await vi.advanceTimersByTimeAsync(1)
  expect([await first, late]).toEqual([false, 1])
  // The next request of the connection does not wait again.
  expect([await process.reads(), await process.isOwn(), searches]).toEqual([false, false, 1])
  resolve(ours)
  await promise
  expect([await process.reads(), await process.isOwn(), searches]).toEqual([true, true, 1])
})
