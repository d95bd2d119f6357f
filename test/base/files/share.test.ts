import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { foreignShare, type LinkReader, readNamed, shareAt, treeOf, walk } from '../../../src/core/base/files/index.ts'
import { readPipe } from '../../../src/core/base/files/pipe.ts'
import { files } from '../../support/engine/files.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'

const mounts = treeOf(
  [
    '1 1 0:2 / / rw - rootfs rootfs rw',
    '20 1 8:1 / / rw - ext4 /dev/sda1 rw',
    '21 20 0:5 / /proc rw - proc proc rw',
    '22 20 0:30 / /run rw - tmpfs tmpfs rw',
    '23 20 0:40 / /mnt/media rw - nfs4 nas:/media rw',
    '24 23 8:17 / /mnt/media/local rw - xfs /dev/sdb1 rw',
    '25 20 0:41 / /mnt/auto rw - autofs systemd-1 rw',
    '26 25 0:42 / /mnt/auto rw - cifs //nas/auto rw',
    '27 20 8:18 / /srv/data rw - ext4 /dev/sdb2 rw',
    '28 20 0:43 / /srv rw - fuse.sshfs you@there:/srv rw',
    '29 20 0:44 / /mnt/a\\040b rw - 9p host rw',
    '30 20 8:19 / /mnt/disk rw - fuseblk /dev/sdc1 rw',
  ].join('\n'),
)
const links: Readonly<Record<string, string>> = {
  '/etc/app': '../mnt/media/app',
  '/etc/absolute': '/mnt/auto/app',
  '/etc/near': 'app.conf',
  '/home/loop': 'loop',
  '/home/up': '/run/up/..',
  '/proc/self': '77',
  '/proc/77/fd/3': '/mnt/media/open',
  '/proc/77/fd/4': 'pipe:[4711]',
  '/proc/88/root': '/',
}
const linkAt: LinkReader = (path) => {
  if (path.startsWith('/gone')) return 'nothing'
  const target = links[path]
  return target === undefined ? 'no link' : { target }
}
const pointOf = (path: string): string | undefined => walk(path, mounts, linkAt, 77)?.point

describe('H30 the share that a path leads to', () => {
  test.each([
    ['/etc/svc/svc.yaml', undefined],
    ['/run/credentials/svc/password', undefined],
    ['/mnt/media/version', '/mnt/media'],
    ['/mnt/media', '/mnt/media'],
    ['/mnt/mediathek/version', undefined],
    ['/mnt//media/./version', '/mnt/media'],
    // The path leads through the share, although it ends on a disk.
    ['/mnt/media/local/version', '/mnt/media'],
    ['/mnt/auto/app', '/mnt/auto'],
    ['/mnt/a b/file', '/mnt/a b'],
    // A program of this machine serves it.
    ['/mnt/disk/file', '/mnt/disk'],
    // The later mount hides the disk below it.
    ['/srv/data/file', '/srv'],
    ['/etc/app/version', '/mnt/media'],
    ['/etc/absolute', '/mnt/auto'],
    ['/etc/near', undefined],
    ['/mnt/../etc/near', undefined],
    ['/etc/../mnt/media/x', '/mnt/media'],
    // The kernel goes up from the target of the link.
    ['/home/up/../mnt/media', '/mnt/media'],
    ['/home/loop/x', undefined],
    ['/gone/mnt/media', undefined],
    ['/proc/self/fd/3', '/mnt/media'],
    ['/proc/self/fd/4', undefined],
    // The root of another process may be in other mounts.
    ['/proc/88/root/mnt/media', '/proc'],
  ])('%s is %s', (path, point) => {
    expect(pointOf(path)).toBe(point)
  })

  test('the root counts as local, whatever it is: svc itself runs from it', () => {
    const root = treeOf('20 1 0:50 / / rw - nfs4 nas:/root rw\n21 20 0:51 / /data rw - nfs4 nas:/data rw')
    expect(walk('/etc/svc.yaml', root, linkAt)).toBeUndefined()
    expect(walk('/data/x', root, linkAt)?.point).toBe('/data')
  })

  test('in a changed root, which the list of mounts leaves out, mounts below it are found', () => {
    const tree = treeOf('31 20 0:51 / /data rw - nfs4 nas:/data rw')
    expect(walk('/etc/svc.yaml', tree, linkAt)).toBeUndefined()
    expect(walk('/data/x', tree, linkAt)?.point).toBe('/data')
  })

  test('on Windows, everything but the disk of the system is one', () => {
    const name = (path: string) => foreignShare(path, 'win32', { SystemDrive: 'C:' })?.name
    expect([name('c:\\svc\\svc.yaml'), name('svc.yaml')]).toEqual([undefined, undefined])
    expect([name('Z:\\in'), name('\\\\nas\\media\\in')]).toEqual(['Z:', '\\\\nas\\media'])
  })

  test('on macOS, everything outside of the folders of the system is one', () => {
    const name = (path: string) => foreignShare(path, 'darwin')?.name
    expect([name('/Users/ann/svc.yaml'), name('/private/etc/svc.yaml')]).toEqual([undefined, undefined])
    expect([name('/Volumes/media/in'), name('/mnt/nas/in')]).toEqual(['/Volumes/media', '/mnt'])
  })
})

describe('H30 a local path that cannot be read', () => {
  const folder = temporaryFolder()
  const path = (name: string): string => join(folder, name)

  test('a named pipe and a folder are refused at once', async () => {
    execFileSync('mkfifo', [path('pipe')])
    for (const one of [path('pipe'), folder]) {
      await expect(files('read', { path: one, maxBytes: 10 })).rejects.toMatchObject({ code: 'EFTYPE' })
    }
    expect(shareAt(path('pipe'))).toBeUndefined()
  })

  test('a file is read up to its limit, with what links to it', async () => {
    writeFileSync(path('file'), '0123456789')
    symlinkSync('file', path('link'))
    const text = async (maxBytes: number, isHead = false) =>
      Buffer.from((await files('read', { path: path('link'), maxBytes, isHead })).content, 'base64').toString()
    expect(await text(10)).toBe('0123456789')
    expect(await text(4, true)).toBe('0123')
    await expect(text(9)).rejects.toMatchObject({ code: 'EFBIG', message: 'is larger than 9 bytes' })
    await expect(files('read', { path: path('none'), maxBytes: 1 })).rejects.toMatchObject({ code: 'ENOENT' })
    expect((await files('read', { path: '/proc/self/status', maxBytes: 65_536 })).content).not.toBe('')
  })

  test('a pipe that a command line names is read to its end, also when its writer comes later', async () => {
    execFileSync('mkfifo', [path('late')])
    const writer = spawn('sh', ['-c', 'sleep 0.3; printf "a key" > "$0"', path('late')])
    const ended = once(writer, 'exit')
    expect(await readNamed(path('late'), 100)).toBe('a key')
    await ended
    expect(await readNamed('/dev/null', 100)).toBe('')
    await expect(readPipe(path('late'), 100, 100)).rejects.toThrow('is a pipe that did not end within 0.1 s')
    await expect(readPipe('/dev/zero', 100, 1_000)).rejects.toThrow('is larger than 100 bytes')
  })

  test('a listing counts files and names the oldest and the newest', async () => {
    mkdirSync(path('in'))
    for (const name of ['a.xml', 'b.xml', '.hidden.xml', 'c.txt']) writeFileSync(path(`in/${name}`), name)
    const list = (hidden: boolean, maxFiles = 100) =>
      files('list', { path: path('in'), ending: '.xml', hidden, maxFiles })
    expect(await list(false)).toMatchObject({ files: 2, more: false })
    expect(await list(true)).toMatchObject({ files: 3, more: false })
    expect(await list(true, 2)).toMatchObject({ files: 2, more: true })
  })
})
