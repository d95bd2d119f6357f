import { expect, test } from 'vitest'
import { hostWithMount, type MountFault, mountsMissing } from '../../support/faults/mounts.ts'
import { suiteWith } from '../../support/suite/peer.ts'

/** The result for the planted file system; undefined when there is none. */
function diskWith(fault: MountFault, options: Parameters<typeof hostWithMount>[1] = {}, check = 'disk') {
  const { folder, results } = hostWithMount(fault, options)
  return results.find((result) => result.check.startsWith(`${check} ${folder}`))
}

suiteWith(mountsMissing, 'the file systems of this machine', () => {
  test('a file system that is mounted and has space is ok', () => {
    expect(diskWith('none')).toMatchObject({ status: 'ok', measurement: { unit: 'percent' } })
  })
  test('a file system that the kernel has made read-only after an error fails', () => {
    const result = diskWith('errorOfTheDisk')
    expect(result).toMatchObject({ status: 'failed', fault: 'data', measurement: { unit: 'percent' } })
    expect(result?.message).toMatch(/^the file system is read-only; \d/)
  })
  test('H31 a file system that was remounted read-only, without an error, is a warning with its free space', () => {
    const result = diskWith('remountedReadOnly')
    expect(result).toMatchObject({ status: 'warning', measurement: { unit: 'percent', warn: 20, limit: 10 } })
    expect(result?.message).toMatch(/^the file system is read-only, and the kernel has counted no error; \d/)
  })
  test('a file system with ro in /etc/fstab is read-only by design', () => {
    const fstab = '# a comment\n/dev/somewhere\tDATA ext4 defaults,ro 0 2\n'
    expect(diskWith('remountedReadOnly', { fstab })).toBeUndefined()
    expect(diskWith('remountedReadOnly', { fstab: '#/dev/somewhere DATA ext4 ro 0 2\n' })).toBeDefined()
  })
  test('a writable file system is checked in the sandbox of a service, which sees it read-only', () => {
    expect(diskWith('sandboxed')).toMatchObject({ status: 'ok' })
  })
  test('a file system without inodes fails', () => {
    expect(diskWith('withoutInodes', {}, 'inodes')).toMatchObject({ status: 'failed', fault: 'threshold' })
  })
  test('a file system that another mount hides is not checked', () => {
    expect(diskWith('hidden')).toMatchObject({ status: 'failed', notChecked: 'missing' })
  })
  test('a file system that this account may not reach is not checked', () => {
    const result = diskWith('unreachable', { asNobody: true })
    expect(result).toMatchObject({ status: 'warning', notChecked: 'permission' })
    expect(result?.message).toContain('chmod o+x')
  })
})
