import { describe, expect, test } from 'vitest'
import { follow, type LinkAt, type PathPlace, untrustedPlaces, wayAlong } from '../../src/core/base/own-files.ts'

/** `path owner[:group] mode`, with `ro` for a read-only file system, and `-> target` for a link. */
function placeIn(text: string): PathPlace {
  const [path = '', owner = '', mode = '', ...more] = text.split(' ')
  const [uid, gid = uid] = owner.split(':').map(Number)
  const target = more[0] === '->' ? more[1] : undefined
  const kind = target !== undefined ? 0o120000 : path.includes('.') ? 0o100000 : 0o040000
  return {
    path,
    uid: uid ?? 0,
    gid: gid ?? 0,
    mode: kind | Number.parseInt(mode, 8),
    target,
    isFolder: kind === 0o040000,
    isReadOnly: more[0] === 'ro',
  }
}

/** Alice, 1000, has a group of her own; the group 50 has other members. */
const accounts = {
  passwd: () => 'root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n',
  group: () => 'root:x:0:\nalice:x:1000:\nstaff:x:50:alice,bob\n',
}
const reasonsOf = (places: readonly string[], uid: number | undefined): readonly string[] =>
  untrustedPlaces(places.map(placeIn), { uid, accounts }).map(({ reason }) => reason)

const root = '/ 0 755'
const other = (path: string, uid = 1001): string => `${path} belongs to another user (uid ${uid})`
const open = (path: string, mode: string): string => `${path} can be written by others (mode ${mode})`

describe('W21 whom a way is trusted by', () => {
  test.each([
    ['all belongs to root', 1000, [root, '/etc 0 755', '/etc/svc.yaml 0 644'], []],
    ['root and this account', 1000, [root, '/home 0 755', '/home/a 1000 700', '/home/a/svc.yaml 1000 600'], []],
    ['another account', 1000, [root, '/srv 0 755', '/srv/b 1001 755', '/srv/b/svc.yaml 1000 600'], [other('/srv/b')]],
    ['this account, for root', 0, [root, '/home 0 755', '/home/a 1000 755'], [other('/home/a', 1000)]],
    ['others write above', 1000, [root, '/srv 0 777', '/srv/c 1000 700'], [open('/srv', '777')]],
    ['a shared group writes above', 1000, [root, '/srv 0:50 775', '/srv/c 1000 700'], [open('/srv', '775')]],
    ['a group without a name writes', 1000, [root, '/srv 0:77 775', '/srv/c 1000 700'], [open('/srv', '775')]],
    ['the group of the owner alone writes', 1000, [root, '/home 0 755', '/home/a 1000 775'], []],
    ['set-group-id does not make it sticky', 0, [root, '/srv 0 2777', '/srv/c 0 755'], [open('/srv', '2777')]],
    ['a read-only file system', 1000, [root, '/cfg 0 777 ro', '/cfg/svc.yaml 0 666 ro'], []],
    ['another account on a read-only file system', 1000, [root, '/cfg 1001 755 ro'], [other('/cfg')]],
    ['a sticky folder with what is ours', 1000, [root, '/tmp 0 1777', '/tmp/a 1000 700'], []],
    ['a sticky folder with what is root’s', 1000, [root, '/tmp 0 1777', '/tmp/a 0 755'], []],
    [
      'a sticky folder with what is not',
      1000,
      [root, '/tmp 0 1777', '/tmp/a 1001 755'],
      [open('/tmp', '1777'), other('/tmp/a')],
    ],
    ['a sticky folder of another account', 1000, [root, '/srv 1001 1777', '/srv/a 1000 700'], [other('/srv')]],
    ['a sticky folder at the end', 1000, [root, '/tmp 0 1777'], [open('/tmp', '1777')]],
    ['a sticky file', 1000, [root, '/etc 0 755', '/etc/svc.yaml 0 1666'], [open('/etc/svc.yaml', '1666')]],
    ['the link of another account', 1000, [root, '/srv 0 755', '/srv/l 1001 777 -> /etc', '/etc 0 755'], []],
    [
      'the link of another account in a sticky folder',
      1000,
      [root, '/tmp 0 1777', '/tmp/l 1001 777 -> /etc', '/etc 0 755'],
      [open('/tmp', '1777')],
    ],
    ['our link in a sticky folder', 1000, [root, '/tmp 0 1777', '/tmp/l 1000 777 -> /etc', '/etc 0 755'], []],
    [
      'a sticky folder through which two ways go',
      1000,
      [root, '/tmp 0 1777', '/tmp/l 1000 777 -> b', '/tmp/b 1001 755'],
      [open('/tmp', '1777'), other('/tmp/b')],
    ],
    [
      'the folder of a link on the way',
      0,
      [root, '/srv 0 755', '/srv/a 1001 755', '/srv/a/link 0 777 -> /etc/t', '/etc 0 755', '/etc/t 0 755'],
      [other('/srv/a')],
    ],
    ['both at once', 0, [root, '/srv 1001 777', '/srv/c 0 755'], [other('/srv'), open('/srv', '777')]],
    ['every owner, where accounts have no numbers', undefined, [root, '/srv 1001 755', '/srv/c 1002 755'], []],
  ] as const)('W21 %s', (_, uid, places, reasons) => {
    expect(reasonsOf(places, uid)).toEqual(reasons)
  })

  test('W21 each place comes with the command that cures it, quoted for a shell', () => {
    const places = [placeIn('/srv 1001 777'), { ...placeIn('/srv 1001 700'), path: "/srv/o'clock" }]
    expect(untrustedPlaces(places, { uid: 1000, accounts }).map(({ cure }) => cure)).toEqual([
      'chown 1000 /srv',
      'chmod go-w /srv',
      "chown 1000 '/srv/o'\\''clock'",
    ])
  })
})

describe('W21 the places on a way', () => {
  const links: Record<string, string> = {
    '/srv/a/link': '/etc/svc-test/conf.d',
    '/etc/up': '../srv/./a/link',
    '/loop': 'loop',
    '/relative': 'etc',
    '/gone': '/none/x',
  }
  const at = (path: string): LinkAt => {
    const target = links[path]
    return path.startsWith('/none') ? 'nothing' : target === undefined ? 'no link' : { target }
  }
  test.each([
    ['/etc/svc/svc.yaml', '/etc /etc/svc /etc/svc/svc.yaml', '/etc/svc/svc.yaml'],
    [
      '/srv/a/link/x.yaml',
      '/srv /srv/a /srv/a/link /etc /etc/svc-test /etc/svc-test/conf.d /etc/svc-test/conf.d/x.yaml',
      '/etc/svc-test/conf.d/x.yaml',
    ],
    [
      '/relative/up',
      '/relative /etc /etc/up /srv /srv/a /srv/a/link /etc /etc/svc-test /etc/svc-test/conf.d',
      '/etc/svc-test/conf.d',
    ],
    ['/srv/../etc//x', '/srv /etc /etc/x', '/etc/x'],
    [
      '/srv/a/link/../x',
      '/srv /srv/a /srv/a/link /etc /etc/svc-test /etc/svc-test/conf.d /etc/svc-test/x',
      '/etc/svc-test/x',
    ],
    ['/../..', '', '/'],
    ['/gone', '/gone /none', undefined],
    ['/loop', Array.from({ length: 41 }, () => '/loop').join(' '), undefined],
  ])('W21 %s leads through every folder and link that the kernel goes through', (path, expected, end) => {
    const places: string[] = []
    const steps = follow(path)
    let step = steps.next()
    for (; !step.done; step = steps.next(at(step.value))) places.push(step.value)
    expect([places.join(' '), step.value]).toEqual([expected, end])
  })

  test('W21 a way begins with the root, and the reader of places rejects for it', async () => {
    const { places, end } = await wayAlong('/a/b', async (path) => placeIn(`${path} 0 755`))
    expect([places.map(({ path }) => path), end]).toEqual([['/', '/a', '/a/b'], '/a/b'])
    await expect(wayAlong('/a', () => Promise.reject(new Error('silent')))).rejects.toThrow('silent')
  })
})
