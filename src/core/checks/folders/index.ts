import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { count, showBytes, showDuration } from '../../base/format.ts'
import { quote } from '../../base/net/text.ts'
import { ProbeError } from '../../base/probe-error.ts'
import { lineMistake, type SettingsSpec, type Threshold } from '../../base/settings/index.ts'
import { atLeast, atMost, checksOn, fail, ok, type Result, warn } from '../engine/index.ts'

/** Maximum entries read of one folder. Any others set `more`. */
export const maxEntries = 10_000

/** A file, its age in milliseconds (negative if it is dated in the future), and when it was changed. */
export type DatedFile = { readonly name: string; readonly ms: number; readonly at: Date }

/** The files waiting in a drop folder. */
export type Backlog = {
  readonly files: number
  /** True when there are more entries than were read. */
  readonly more: boolean
  readonly oldest: DatedFile | undefined
  /** Files wait, but the server sends no date that can be trusted. */
  readonly undated: boolean
}

/** The operations on one folder. Every method throws ProbeError, or what its driver throws. */
export type Files = {
  readonly write: (name: string, bytes: Uint8Array) => Promise<void>
  /** Reads at most `max` bytes. */
  readonly read: (name: string, max: number) => Promise<Uint8Array>
  readonly rename: (from: string, to: string) => Promise<void>
  readonly remove: (name: string) => Promise<void>
  readonly names: () => Promise<readonly string[]>
  /** Whether the listing shows a file; undefined if the folder has more entries than are read. */
  readonly isListed: (name: string) => Promise<boolean | undefined>
}

/** The state of the round trip's file. */
export type Trip = {
  readonly files: Files
  readonly file: ProbeFile
  /** Its current name. When writing failed, part of the file may exist. */
  name: string
  /** True once the file has been read back, whether it was equal or not. */
  isBack: boolean
}

/** A connection to a file server, on which the folder checks run. */
export type FolderConnection = {
  /** True once the account has a folder, also after the session has ended. */
  readonly hasFolders: boolean
  /** False once the session has ended. */
  readonly usable: boolean
  /** Reads a folder and finds the age of the oldest file whose name ends in `ending`. */
  readonly backlog: (folder: string, ending: string) => Promise<Backlog>
  /** Opens a folder; by default the one in which the session started. */
  readonly files: (folder: string | undefined) => Promise<Files>
  /** Set when the round trip begins. */
  trip?: Trip
}

/**
 * The names of the file that a round trip writes. They contain a date, so that our own clock dates leftovers, whatever
 * the server reports, and so that svc deletes only its own files.
 */
const pattern = /^svc-probe-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z-[0-9a-f-]{36}(?:-renamed)?\.tmp$/
/** Milliseconds. A younger file may belong to another running svc. */
const leftoverAfter = 60 * 60_000

export type ProbeFile = { readonly name: string; readonly renamed: string; readonly bytes: Uint8Array }

export function probeFile(size: number, now: Date): ProbeFile {
  const stamp = now.toISOString().replace(/[-:]|\.\d+/g, '')
  const name = `svc-probe-${stamp}-${randomUUID()}`
  return { name: `${name}.tmp`, renamed: `${name}-renamed.tmp`, bytes: randomBytes(size) }
}

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Whether a name belongs to a file that an earlier round trip could not delete. */
export function isLeftover(name: string, now: Date): boolean {
  const [, year, month, day, hour, minute, second] = pattern.exec(name) ?? []
  if (year === undefined) return false
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  return now.getTime() - at > leftoverAfter
}

/** Milliseconds by which the clock of the machine that dates a file may be ahead of ours without a remark. */
const toleranceMs = 60_000

/** A file's age in milliseconds, negative if it is dated in the future, and its date. */
export type Age = { readonly ms: number; readonly at: Date }

/** Compares the age of a file with its threshold. A date in the future is a warning, because no age follows from it. */
export function evaluateAge<const Name extends string>(
  check: Name,
  what: string,
  { ms, at }: Age,
  threshold: Threshold,
): Result<Name> {
  if (ms >= -toleranceMs) return atMost({ check, what, value: Math.max(0, ms), unit: 'duration', at, threshold })
  const ahead = showDuration(-ms)
  const message = `${what} unknown: it is dated ${ahead} in the future; compare the clocks, or look at what dates the file`
  return warn(check, message)
}

export const backlog = checksOn<FolderConnection>()({
  depth: 'Advanced',
  results: {
    'oldest file': 'With `folder`: the age of its oldest file',
    backlog: { doc: 'With `folder` and `files`: the number of files waiting', when: ['files'] },
  },
  settings: {
    folder: {
      type: 'text',
      observed: true,
      mistake: lineMistake,
      doc: 'Drop folder; the age of its oldest file is checked (Advanced)',
    },
    ending: {
      type: 'text',
      observed: true,
      doc: 'In the drop folder, only files whose names end with this, for example .xml. Names that begin with a dot do not count, unless this is the whole name',
    },
    age: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 15 * 60_000, limit: 60 * 60_000 },
      doc: 'How long the oldest file of the drop folder may wait',
    },
    files: { type: 'threshold', unit: 'count', doc: 'How many files may wait in the drop folder' },
  },
  when: ['folder'],
  privilege: 'setfacl -m u:<account>:rx <folder>',
  applies: ({ hasFolders }) => hasFolders,
  observe: async (connection, { folder = '', ending = '' }) => ({
    ...(await connection.backlog(folder, ending)),
    folder,
  }),
  evaluate({ folder, files, more, oldest, undated }, settings) {
    const at = quote(folder, 100)
    const aside = more ? ' (only the first entries were checked)' : ''
    const age = (): Result<'oldest file'> => {
      if (undated)
        return warn(
          'oldest file',
          `${count(files, 'file waits', 'files wait')} in ${at}, but the server reports no dates (neither MLSD nor MDTM)`,
        )
      if (oldest === undefined)
        return more
          ? fail('oldest file', 'data', `none of the first ${maxEntries} entries of ${at} is a file to check`)
          : ok('oldest file', `no file is waiting in ${at}`)
      const what = `oldest file of ${at}, ${quote(oldest.name, 80)}${aside}, has waited`
      return evaluateAge('oldest file', what, oldest, settings.age)
    }
    if (settings.files === undefined) return [age()]
    const what = more ? 'files waiting (only the first entries were checked):' : 'files waiting:'
    return [age(), atMost({ check: 'backlog', what, value: files, unit: 'count', threshold: settings.files })]
  },
})

/** Maximum leftovers deleted in one run; the next run continues. */
const maxDeleted = 20

const check = checksOn<FolderConnection>()

/** The privilege that an account needs to write, rename and delete a file. */
const writing = 'setfacl -m u:<account>:rwx <probeFolder>'

const allowWrites = {
  type: 'flag',
  default: false,
  doc: 'Write a test file, read it back, rename it and delete it (Advanced)',
} as const satisfies SettingsSpec[string]

/** The milliseconds that an action takes. */
async function timed(now: () => number, act: () => Promise<void>): Promise<number> {
  const since = now()
  await act()
  return now() - since
}

export const roundTrip = check({
  depth: 'Advanced',
  results: {
    'round trip': {
      doc: 'With `allowWrites`: a test file is read back with the same SHA-256',
      when: ['allowWrites'],
    },
    throughput: {
      doc: 'With `allowWrites` and `throughput`: the transfer rate of the test file',
      when: ['throughput'],
    },
  },
  settings: {
    allowWrites,
    probeFolder: {
      type: 'text',
      observed: true,
      mistake: lineMistake,
      doc: 'Folder of the test file, named svc-probe-….tmp; by default the working folder after the sign-in',
    },
    probeSize: { type: 'bytes', default: 64 * 1024, doc: 'Size of the test file, up to 4MiB' },
    throughput: {
      type: 'threshold',
      unit: 'bytes',
      isMinimum: true,
      doc: 'Minimum transfer rate of the test file in bytes per second; with small files, latency dominates',
    },
  },
  when: ['allowWrites'],
  privilege: writing,
  applies: ({ hasFolders }) => hasFolders,
  async observe(connection, { probeFolder, probeSize }, { now, date }) {
    const files = await connection.files(probeFolder)
    const file = probeFile(probeSize, date())
    const trip: Trip = { files, file, name: file.name, isBack: false }
    connection.trip = trip
    const { name, bytes } = file
    const writeMs = await timed(now, () => files.write(name, bytes))
    const since = now()
    const back = await files.read(name, bytes.length + 1)
    const readMs = now() - since
    trip.isBack = true
    return {
      writeMs,
      readMs,
      bytesWritten: bytes.length,
      bytesRead: back.length,
      isSame: sha256(back) === sha256(bytes),
    }
  },
  evaluate({ writeMs, readMs, bytesWritten, bytesRead, isSame }, { throughput: threshold }) {
    const size = showBytes(bytesWritten)
    if (!isSame) {
      const isWhole = bytesRead === bytesWritten
      const how = isWhole ? 'with another SHA-256' : `as ${bytesRead} of ${bytesWritten} bytes`
      const cause = isWhole ? 'something changes stored files' : 'transfers are cut short, or the disk is full'
      return fail('round trip', 'data', `${size} written, but read back ${how}: ${cause}`)
    }
    const trip = ok(
      'round trip',
      `${size} written in ${showDuration(writeMs)} and read back in ${showDuration(readMs)}, same SHA-256`,
      { measurement: { value: writeMs + readMs, unit: 'milliseconds' } },
    )
    if (threshold === undefined) return trip
    // Without elapsed time, the value would be infinite.
    const value = (2 * bytesWritten * 1_000) / Math.max(writeMs + readMs, 0.1)
    const what = 'bytes per second, write and read:'
    return [trip, atLeast({ check: 'throughput', what, value, unit: 'bytes', threshold })]
  },
})

export const rename = check({
  depth: 'Advanced',
  results: { rename: 'With `allowWrites`: the test file can be renamed, and is then listed and read by its new name' },
  settings: { allowWrites },
  when: ['allowWrites'],
  emptyWhere: 'the round trip has failed, so there is no file',
  privilege: writing,
  async observe({ trip }, _, { now }) {
    if (!trip?.isBack) return undefined
    const { files, file } = trip
    const ms = await timed(now, () => files.rename(file.name, file.renamed))
    trip.name = file.renamed
    const { length } = file.bytes
    const isSame = sha256(await files.read(file.renamed, length + 1)) === sha256(file.bytes)
    return { ms, isSame, isListed: await files.isListed(file.renamed) }
  },
  evaluate(renamed) {
    if (renamed === undefined) return []
    const { ms, isSame, isListed } = renamed
    const message = `test file renamed in ${showDuration(ms)}`
    if (!isSame) return fail('rename', 'data', `${message}, but its new name leads to other content`)
    if (isListed === false) return fail('rename', 'data', `${message}, but the listing of its folder does not show it`)
    return ok('rename', message, { measurement: { value: ms, unit: 'milliseconds' } })
  },
})

export const deletion = check({
  depth: 'Advanced',
  results: { delete: 'With `allowWrites`: the test file can be deleted' },
  settings: { allowWrites },
  when: ['allowWrites'],
  emptyWhere: 'the round trip has failed, so there is no file',
  privilege: writing,
  async observe({ trip }, _, { now }) {
    if (trip?.isBack) return await timed(now, () => trip.files.remove(trip.name))
    // The round trip has failed, and it is unknown whether there is a file to delete: not a second failure.
    await trip?.files.remove(trip.name).catch(() => {})
    return undefined
  },
  evaluate: (ms) => (ms === undefined ? [] : ok('delete', `test file deleted in ${showDuration(ms)}`)),
})

export const sweep = check({
  depth: 'Advanced',
  results: { sweep: 'With `allowWrites`: files left behind by earlier round trips are deleted' },
  settings: { allowWrites },
  when: ['allowWrites'],
  emptyWhere: 'the round trip could not open its folder',
  privilege: writing,
  async observe(connection, _, { date, signal }) {
    if (connection.trip === undefined) return undefined
    const { files } = connection.trip
    const now = date()
    const leftovers = (await files.names()).filter((name) => isLeftover(name, now))
    let deleted = 0
    let problem: string | undefined
    for (const name of leftovers.slice(0, maxDeleted)) {
      try {
        await files.remove(name)
        deleted += 1
      } catch (cause) {
        if (!connection.usable || signal.aborted) throw cause
        problem ??= cause instanceof ProbeError ? cause.message : String(cause)
      }
    }
    return { leftovers: leftovers.length, deleted, problem }
  },
  evaluate(observation) {
    if (observation === undefined) return []
    const { leftovers, deleted, problem } = observation
    if (leftovers === 0) return ok('sweep', 'no files left behind by earlier round trips')
    const message = `${deleted} of ${count(leftovers, 'leftover')} of earlier round trips deleted`
    return problem === undefined ? ok('sweep', message) : warn('sweep', message, { details: [problem] })
  },
})

/** The checks of the folders of any file server. */
export const folderChecks = [backlog, roundTrip, rename, deletion, sweep] as const

/** Bytes. More would be a load test, not a check. */
const maxProbeSize = 4 * 1024 * 1024

type FolderValues = {
  readonly username?: string | undefined
  readonly folder?: string | undefined
  readonly allowWrites: boolean
  readonly probeFolder?: string | undefined
  readonly probeSize: number
}

/** Why the settings cannot be used together, or undefined. */
export function validateFolders(settings: FolderValues): string | undefined {
  if (settings.username === undefined) {
    if (settings.folder !== undefined) return 'folder needs a username'
    if (settings.allowWrites) return 'allowWrites needs a username'
  }
  if (settings.probeSize < 1 || settings.probeSize > maxProbeSize) return 'probeSize must be 1B to 4MiB'
  for (const name of ['username', 'folder', 'probeFolder'] as const) {
    if (/\p{Cc}/u.test(settings[name] ?? '')) return `${name} holds a control character`
  }
  return undefined
}
