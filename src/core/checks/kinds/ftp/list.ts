import { quote } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { isWaiting } from '../../../base/system/files.ts'
import { type Backlog, type DatedFile, maxEntries } from '../../folders/index.ts'
import { type FtpLink, wait } from './control.ts'
import { describeEndpoint, type Passive, reach, requestPassive, transfer } from './data.ts'

/** Maximum bytes read of a listing. A longer listing is truncated, and the result says so. */
export const maxListing = 1024 * 1024
/** Maximum characters of a line that describes a file. */
const maxLine = 4096
/** Maximum number of files whose dates are requested one by one, for listings without exact dates. */
const maxDated = 20

/** The listing of a folder, over a data connection in the mode that works. Throws ProbeError. */
export async function listed(
  link: FtpLink,
  mode: Passive,
  command: 'LIST' | 'MLSD',
): Promise<{ lines: readonly string[]; cut: boolean }> {
  const { bytes, cut } = await transfer(link, command, await dataSocket(link, mode), { max: maxListing })
  return { lines: linesOf(bytes), cut }
}

export function linesOf(bytes: Uint8Array): readonly string[] {
  const lines = new TextDecoder().decode(bytes).split(/\r?\n/, maxEntries + 1)
  // Keeps the beginning of a line that is too long: without it, the listing would look like that of an empty folder.
  return lines.map((line) => line.slice(0, maxLine + 1)).filter((line) => line.trim() !== '')
}

/** Opens a data connection in a mode that worked before. Throws ProbeError if it no longer works. */
export async function dataSocket(link: FtpLink, mode: Passive) {
  const gate = await requestPassive(link, mode)
  if ('why' in gate)
    throw new ProbeError(
      'protocol',
      `${link.control.address} answered ${mode} with ${link.control.display(gate.reply)}`,
    )
  if (gate.foreign && !link.dataHosts.includes(gate.ip)) {
    throw new ProbeError('data', `${describeEndpoint(gate)}, a different address than before: nothing was sent there`)
  }
  const reached = await reach(link, gate.ip, gate.port)
  if ('socket' in reached) return reached.socket
  throw new ProbeError(
    'timeout',
    `another data connection to ${link.control.address} failed (${reached.failed}): the passive port range may be exhausted`,
  )
}

type Entry = Awaited<ReturnType<typeof filesIn>>[number]

/** Loads the parser for listings in human-readable format. */
export const loadFtpLists = () => import('basic-ftp')

/** The files in the current folder of the session. */
export async function entries(
  link: FtpLink,
  mode: Passive,
  machine: boolean,
): Promise<{ files: readonly Entry[]; more: boolean }> {
  const { lines, cut } = await listed(link, mode, machine ? 'MLSD' : 'LIST')
  const more = cut || lines.length > maxEntries
  // A truncated last line would name a file that does not exist.
  const whole = more ? lines.slice(0, Math.min(lines.length - 1, maxEntries)) : lines
  const files = await filesIn(whole, link.context.date())
  // Without this, a folder whose listing svc cannot read would look empty.
  if (files.length === 0 && (await isUnreadable(whole))) {
    const first = whole.find((line) => !isHeading(line)) ?? ''
    throw new ProbeError(
      'protocol',
      `${link.control.address} lists the folder in a format that svc cannot read: ${quote(link.redact(first), 80)}`,
    )
  }
  return { files, more }
}

/** The first line of `ls -l`, or an empty line. */
const isHeading = (line: string): boolean => /^(?:total \d{1,15})?$/i.test(line.trim().slice(0, 40))

/** A line about the folder itself or its parent, which the driver leaves out. */
const isOfFolder = (line: string): boolean => /^total\b|(?:^|\s)\.{1,2}$|\btype=[cp]dir;/i.test(line)

/** True if a listing has lines, and none of them describes a file or a folder. */
export async function isUnreadable(lines: readonly string[]): Promise<boolean> {
  const { parseList } = await loadFtpLists()
  const isUnread = (line: string): boolean => {
    try {
      // The driver returns nothing for a line that it recognizes without finding a name in it.
      return !isOneName(line) || (parseList(line).length === 0 && !isOfFolder(line))
    } catch {
      return true
    }
  }
  const described = lines.filter((line) => !isHeading(line))
  return described.length > 0 && described.every(isUnread)
}

/** A driver would end the name at a control character, and a cut line names a different file too. */
const isOneName = (line: string): boolean => line.length <= maxLine && !/[^\P{Cc}\t]/u.test(line)

/** The files that the lines of a listing describe; skips all other lines. */
export async function filesIn(lines: readonly string[], now: Date) {
  const { parseList } = await loadFtpLists()
  // Parses line by line: the driver infers the format of all lines from the last one, and throws if it does not know
  // that.
  return lines
    .filter(isOneName)
    .flatMap((line) => parsed(parseList, line))
    .filter((file) => file.isFile)
    .map((file) => ({
      name: file.name,
      at: sound(file.modifiedAt),
      /** Milliseconds, to compare with others. */
      rough: roughly(file.rawModifiedAt, now),
    }))
}

function parsed<F>(parse: (line: string) => readonly F[], line: string): readonly F[] {
  try {
    return parse(line)
  } catch {
    return []
  }
}

const sound = (date: Date | undefined): Date | undefined =>
  date !== undefined && Number.isFinite(date.getTime()) ? date : undefined

/**
 * Parses `Nov 21 04:27`, `Nov 21 2024` or `11-21-24 04:27AM`. They have no time zone, so the result only serves to find
 * the older file.
 */
export function roughly(written: string, now: Date): number {
  const [, month, day, clock, year] = /^(\S{3})\s+(\d{1,2})\s+(?:(\d{1,2}:\d\d)|(\d{4}))$/.exec(written) ?? []
  if (month === undefined) {
    const [, mm, dd, yy, hour, half] = /^(\d\d)-(\d\d)-(\d{2,4})\s+(\d\d:\d\d)([AP]M)?$/.exec(written) ?? []
    const full = Number(yy) < 100 ? 2000 + Number(yy) : yy
    return Date.parse(mm === undefined ? `${written} UTC` : `${mm}/${dd}/${full} ${hour} ${half ?? ''} UTC`) || 0
  }
  const at = (of: number): number => Date.parse(`${month} ${day} ${of} ${clock ?? '00:00'} UTC`) || 0
  if (year !== undefined) return at(Number(year))
  const thisYear = at(now.getUTCFullYear())
  return thisYear > now.getTime() + 86_400_000 ? at(now.getUTCFullYear() - 1) : thisYear
}

/** The age of the oldest file in the current folder of the session. Throws ProbeError. */
export async function backlog(link: FtpLink, mode: Passive, machine: boolean, ending: string): Promise<Backlog> {
  const { files: all, more } = await entries(link, mode, machine)
  const files = all.filter((file) => isWaiting(file.name, ending)).sort((a, b) => a.rough - b.rough)
  const waiting = { files: files.length, more }
  const now = link.context.date().getTime()
  const of = (file: Entry, at: Date) => ({ name: link.redact(file.name), ms: now - at.getTime(), at })
  const dated = files.flatMap((file) => (file.at ? [{ file, at: file.at }] : []))
  const [oldest] = dated.sort((a, b) => a.at.getTime() - b.at.getTime())
  if (oldest || files.length === 0) return { ...waiting, oldest: oldest && of(oldest.file, oldest.at), undated: false }
  let oldestFile: DatedFile | undefined
  for (const file of files.slice(0, maxDated)) {
    const reply = await link.control.ask(`MDTM ${file.name}`, wait(link.context))
    // The file is gone, so it no longer waits.
    if (reply.code === 550) continue
    const at = reply.code === 213 ? stamp(reply.text) : undefined
    if (at === undefined) break
    const one = of(file, at)
    if (oldestFile === undefined || one.ms > oldestFile.ms) oldestFile = one
  }
  return { ...waiting, oldest: oldestFile, undated: oldestFile === undefined }
}

/** Parses `213 20261121042700` and variants (RFC 3659, 2.3), which are always in UTC. */
export function stamp(text: string): Date | undefined {
  const [, year, month, day, hour, minute, second] = /^213 (\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)/.exec(text) ?? []
  return year === undefined ? undefined : sound(new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`))
}
