import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { release, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileOfAge, folderWith } from '../support/faults/folder-faults.ts'
import { sleeping, sleepNamed, stoppedProcess, withPidFile, zombieProcess } from '../support/faults/process-faults.ts'
import { remove } from '../support/servers/server.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails, warns } from './row.ts'

const kernel = process.platform === 'linux' ? `Linux ${release().replace(/[^0-9.].*/, '')}` : process.platform
const onLinux = process.platform === 'linux' ? undefined : 'these faults are planted on Linux'

type Folder = { readonly path: string }
const folderOf = (name: string) => () => {
  const path = mkdtempSync(join(tmpdir(), name))
  chmodSync(path, 0o755)
  return Promise.resolve({ path })
}
const hourMs = 3_600_000

const fileAge =
  (name: string, more: object = {}) =>
  ({ path }: Folder) => ({ kind: 'file-age', path: join(path, name), ...more })
const askAge =
  (name: string) =>
  ({ path }: Folder): readonly PeerProgram[] => [
    { program: 'check_file_age', args: ['-w', '900', '-c', '3600', '-f', join(path, name)] },
  ]
const withFile =
  (name: string, ageMs: number, content?: string) =>
  ({ path }: Folder) => {
    const file = fileOfAge(path, name, ageMs, content)
    return Promise.resolve(() => rmSync(file))
  }
const withFolder =
  (name: string, files: number, ageMs = 0) =>
  ({ path }: Folder) =>
    Promise.resolve(folderWith(join(path, name), files, ageMs))

/** Backups of these ages in hours, `db-24.dump` for one of a day. */
const withBackups =
  (...hours: readonly number[]) =>
  async ({ path }: Folder) => {
    const folder = join(path, 'backups')
    mkdirSync(folder)
    for (const age of hours) fileOfAge(folder, `db-${age}.dump`, age * hourMs, 'backup')
    return () => rmSync(folder, { recursive: true })
  }

corpus<Folder>({
  server: `files and folders of ${kernel}`,
  missing: onLinux,
  start: folderOf('svc-files-'),
  stop: ({ path }) => remove(path),
  rows: [
    {
      fault: 'healthy: a fresh backup',
      monitor: fileAge('backup.dump', { size: '1B' }),
      plant: withFile('backup.dump', 60_000),
      expected: { state: 'healthy' },
      peers: askAge('backup.dump'),
    },
    {
      fault: 'healthy: a folder with fresh files',
      monitor: fileAge('drop', { files: { warn: 10, limit: 20 } }),
      plant: withFolder('drop', 3),
      expected: { state: 'healthy' },
    },
    {
      fault: 'a dump three days old beside a transfer that has not ended (.part), never met',
      monitor: fileAge('backups', { newest: { warn: '24h', limit: '48h' } }),
      plant: async (folder) => {
        const remove = await withBackups(72)(folder)
        fileOfAge(join(folder.path, 'backups'), 'db-2.dump.part', 60_000, 'half')
        return remove
      },
      expected: fails('newest', 'threshold', /db-72\.dump/),
    },
    {
      fault: 'the newest backup is all zero bytes, never met',
      monitor: fileAge('backups', { newest: { warn: '24h', limit: '48h' } }),
      mode: 'Advanced',
      plant: async (folder) => {
        const remove = await withBackups(24)(folder)
        fileOfAge(join(folder.path, 'backups'), 'db-1.dump', hourMs, '\0'.repeat(4_096))
        return remove
      },
      expected: warns('zeros', /db-1\.dump/),
    },
    {
      fault: 'the folder is empty',
      monitor: fileAge('empty', { files: { warn: 10, limit: 20 } }),
      plant: withFolder('empty', 0),
      expected: { state: 'healthy' },
    },
    {
      fault: 'the backup is missing',
      monitor: fileAge('backup.dump'),
      expected: fails('there', 'data', /backup\.dump does not exist/),
      peers: askAge('backup.dump'),
    },
    {
      fault: 'the backup is two hours old',
      monitor: fileAge('backup.dump'),
      plant: withFile('backup.dump', 2 * hourMs),
      expected: fails('age', 'threshold', /backup\.dump: age 2 h/),
      peers: askAge('backup.dump'),
    },
    {
      fault: 'the backup is empty',
      monitor: fileAge('backup.dump', { size: '1KiB' }),
      plant: withFile('backup.dump', 60_000, ''),
      expected: fails('size', 'threshold', /backup\.dump has 0 B/),
      peers: ({ path }) => [
        {
          program: 'check_file_age',
          args: ['-w', '900', '-c', '3600', '-W', '1', '-C', '1', '-f', join(path, 'backup.dump')],
        },
      ],
    },
    {
      fault: 'the backup is dated two days in the future',
      monitor: fileAge('backup.dump'),
      plant: withFile('backup.dump', -48 * hourMs),
      expected: warns('age', /backup\.dump: age unknown: it is dated 48 h in the future/),
      before: 'age 0 ms, until two days have passed',
      peers: askAge('backup.dump'),
    },
    {
      fault: 'healthy: a folder of backups, of which the newest is fresh',
      monitor: fileAge('backups', { newest: { warn: '25h', limit: '49h' }, size: '4B' }),
      plant: withBackups(0, 24, 48),
      expected: { state: 'healthy' },
    },
    {
      fault: 'the newest of several backups is three days old',
      monitor: fileAge('backups', { newest: { warn: '25h', limit: '49h' } }),
      plant: withBackups(72, 96, 120),
      expected: fails('newest', 'threshold', /^newest file db-72\.dump: age (3 d|72 h)/),
      before: 'could not be expressed: only the oldest file counted',
    },
    {
      fault: 'the folder of backups is empty',
      monitor: fileAge('backups', { newest: { limit: '49h' } }),
      plant: withBackups(),
      expected: fails('newest', 'data', /there is no file/),
      before: 'healthy: no file is waiting',
    },
    {
      fault: 'the newest backup is empty',
      monitor: fileAge('backups', { newest: { limit: '49h' }, size: '1KiB' }),
      plant: withBackups(0, 24),
      expected: fails('size', 'threshold', /^newest file db-0\.dump has \d B/),
    },
    {
      fault: 'healthy: a fresh backup of a pattern, beside old files of other names',
      monitor: fileAge('backups/db-?.dump', { newest: { limit: '1h' }, age: { limit: '2h' } }),
      plant: withBackups(0, 96),
      expected: { state: 'healthy' },
    },
    {
      fault: 'of a pattern only an old file is there',
      monitor: fileAge('backups/db-9*.dump', { newest: { limit: '49h' } }),
      plant: withBackups(0, 96),
      expected: fails('newest', 'threshold', /^newest file db-96\.dump: age (4 d|96 h)/),
    },
    {
      fault: 'no file matches a pattern that needs a newest one',
      monitor: fileAge('backups/*.sql', { newest: { limit: '49h' } }),
      plant: withBackups(0, 24),
      expected: fails('newest', 'data', /backups\/\*\.sql: there is no file/),
    },
    {
      fault: 'a file waits in the folder for two hours',
      monitor: fileAge('drop'),
      plant: withFolder('drop', 1, 2 * hourMs),
      expected: fails('age', 'threshold', /order-0\.xml: age 2 h/),
    },
    {
      fault: 'too many files wait in the folder',
      monitor: fileAge('drop', { files: { warn: 10, limit: 20 } }),
      plant: withFolder('drop', 21),
      expected: fails('backlog', 'threshold', /waiting: 21/),
    },
  ],
})

type Program = { readonly path: string; readonly name: string; readonly program: string }
/** Longer than the 15 characters that the kernel keeps of a name. */
const sleeper = `svc-corpus-sleeper-${process.pid}`
const processOf =
  (more: object = {}) =>
  ({ name }: Program) => ({
    kind: 'process',
    executable: name,
    restarted: { warn: '0s' },
    memory: { limit: '1GiB' },
    cpu: { warn: 90 },
    count: { min: 1, max: 2 },
    ...more,
  })
const askProcesses = ({ name }: Program): readonly PeerProgram[] => [
  { program: 'check_procs', args: ['-c', '1:2', '-a', name] },
]

/** The host block; what the machine of the tests does besides says nothing about its processes. */
const hostOf = (more: object) => () => ({
  kind: 'host',
  cpu: { warn: 100 },
  load: { warn: 1_000 },
  memory: { warn: 0.1 },
  swap: 'off',
  disks: ['/dev/shm'],
  restarted: { warn: '0s' },
  ...more,
})

corpus<Program>({
  server: `processes of ${kernel}`,
  missing: onLinux,
  start: async () => {
    const { path } = await folderOf('svc-processes-')()
    return { path, name: sleeper, program: sleepNamed(path, sleeper) }
  },
  stop: ({ path }) => remove(path),
  rows: [
    {
      fault: 'healthy',
      monitor: processOf(),
      plant: ({ program }) => sleeping(program, 2),
      expected: { state: 'healthy' },
      peers: askProcesses,
    },
    {
      fault: 'the process does not run',
      monitor: processOf(),
      expected: fails('running', 'data', /not running/),
      peers: askProcesses,
    },
    {
      fault: 'healthy: a process that is not to run does not run',
      monitor: ({ name }) => ({ kind: 'process', executable: name, running: false }),
      expected: { state: 'healthy' },
    },
    {
      fault: 'a process that is not to run runs',
      monitor: ({ name }) => ({ kind: 'process', executable: name, running: false }),
      plant: ({ program }) => sleeping(program, 1),
      expected: fails('running', 'data', /process \d+ runs, and `running: false` expects none/),
    },
    {
      fault: 'the process is stopped (SIGSTOP)',
      monitor: processOf(),
      plant: ({ program }) => stoppedProcess(program),
      expected: fails('running', 'data', /not running; 1 stopped by a signal/),
      before: 'running',
      peers: askProcesses,
    },
    {
      fault: 'the process has ended and its parent has not collected it',
      monitor: processOf(),
      plant: ({ program }) => zombieProcess(program),
      expected: fails('running', 'data', /not running; .*zombie/),
      peers: askProcesses,
    },
    {
      fault: 'healthy: a process and its process id file',
      monitor: ({ path }) => ({ kind: 'process', pidFile: join(path, 'pid'), restarted: { warn: '0s' } }),
      plant: ({ program, path }) => withPidFile(program, join(path, 'pid'), 0),
      expected: { state: 'healthy' },
    },
    {
      fault: 'the process has ended, and another one has got its id',
      monitor: ({ path }) => ({ kind: 'process', pidFile: join(path, 'pid'), restarted: { warn: '0s' } }),
      plant: ({ program, path }) => withPidFile(program, join(path, 'pid'), 120_000),
      expected: fails(
        'running',
        'data',
        /^not running; .*pid names process \d+, but that started after the file was written: another process/,
      ),
      before: 'running',
    },
    {
      fault: 'the program was upgraded, and the old one still runs',
      monitor: processOf(),
      plant: async ({ program, path }) => {
        const end = await sleeping(program, 2)
        rmSync(program)
        return async () => {
          await end()
          sleepNamed(path, sleeper)
        }
      },
      expected: warns('program', /^process \d+ and 1 more still run a program that was replaced/),
      before: 'running',
    },
    {
      fault: 'healthy: few zombies on the machine',
      monitor: hostOf({ zombies: { limit: 100_000 } }),
      expected: { state: 'healthy' },
    },
    {
      fault: 'a process does not collect its children',
      monitor: hostOf({ zombies: { limit: 0 } }),
      plant: ({ program }) => zombieProcess(program),
      expected: fails('zombies', 'threshold', /^zombie processes: \d+ \(.*fail 0\)/),
      peers: () => [{ program: 'check_procs', args: ['-s', 'Z', '-c', '0'] }],
    },
    {
      fault: 'too many processes run',
      monitor: processOf(),
      plant: ({ program }) => sleeping(program, 4),
      expected: fails('count', 'threshold', /4 running/),
      peers: askProcesses,
    },
  ],
})
