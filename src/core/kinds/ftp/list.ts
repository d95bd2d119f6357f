import { type Backlog, type DatedFile, maxEntries } from '../../folders/index.ts'
import { ProbeError } from '../../probe-error.ts'
import { type FtpLink, wait } from './control.ts'
import { describeEndpoint, type Passive, reach, requestPassive, transfer } from './data.ts'

/** Bytes of a listing that are read; what is more is cut, and told. */
export const maxListing = 1024 * 1024
/** Characters of a line of it: a longer one is none. */
const maxLine = 4096
/** Files that are asked for their date one by one, where a listing does not tell it well. */
const maxDated = 20

/** A folder's own listing over a data connection of the way that works. Throws ProbeError. */
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
  return lines.filter((line) => line.trim() !== '' && line.length <= maxLine)
}

/** A data connection of a way that has worked before. Throws ProbeError where it does not any more. */
export async function dataSocket(link: FtpLink, mode: Passive) {
  const gate = await requestPassive(link, mode)
  if ('why' in gate)
    throw new ProbeError(
      'protocol',
      `${link.control.address} answered ${mode} with ${link.control.display(gate.reply)}`,
    )
  if (gate.foreign && !link.dataHosts.includes(gate.ip)) {
    throw new ProbeError('data', `${describeEndpoint(gate)}, another address than before: nothing was sent there`)
  }
  const reached = await reach(link, gate.ip, gate.port)
  if ('socket' in reached) return reached.socket
  throw new ProbeError(
    'timeout',
    `a further data connection with ${link.control.address} ${reached.failed}: the passive range may be used up`,
  )
}

type Entry = {
  readonly name: string
  readonly at: Date | undefined /** Milliseconds, to compare with others. */
  readonly rough: number
}

/** The reader of listings that are meant for people. */
export const loadFtpLists = () => import('basic-ftp')

/** The files of the folder that the session is in. */
export async function entries(
  link: FtpLink,
  mode: Passive,
  machine: boolean,
): Promise<{ files: readonly Entry[]; more: boolean }> {
  const { lines, cut } = await listed(link, mode, machine ? 'MLSD' : 'LIST')
  const more = cut || lines.length > maxEntries
  // A line that is cut in its middle names a file that is not there.
  const whole = more ? lines.slice(0, Math.min(lines.length - 1, maxEntries)) : lines
  return { files: await filesIn(whole, link.context.date()), more }
}

/** The files that the lines of a listing tell of; what is no such line is passed over. */
export async function filesIn(lines: readonly string[], now: Date): Promise<readonly Entry[]> {
  const { parseList } = await loadFtpLists()
  // Line by line: the driver takes the last line for the form of all, and throws where it knows none.
  return (
    lines
      // The driver would end a name there, and it would be another file's.
      .filter((line) => !/[^\P{Cc}\t]/u.test(line))
      .flatMap((line) => parsed(parseList, line))
      .filter((file) => file.isFile)
      .map((file) => ({
        name: file.name,
        at: sound(file.modifiedAt),
        rough: roughly(file.rawModifiedAt, now),
      }))
  )
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

/** `Nov 21 04:27`, `Nov 21 2024`, `11-21-24 04:27AM`: without a zone, so only good to tell the older one. */
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

/** How old the oldest file of the folder is that the session is in. Throws ProbeError. */
export async function backlog(link: FtpLink, mode: Passive, machine: boolean, ending: string): Promise<Backlog> {
  const { files: all, more } = await entries(link, mode, machine)
  const files = all.filter((file) => file.name.endsWith(ending)).sort((a, b) => a.rough - b.rough)
  const waiting = { files: files.length, more }
  const now = link.context.date().getTime()
  const of = (file: Entry, at: Date) => ({ name: link.redact(file.name), ms: Math.max(0, now - at.getTime()), at })
  const dated = files.flatMap((file) => (file.at ? [{ file, at: file.at }] : []))
  const [oldest] = dated.sort((a, b) => a.at.getTime() - b.at.getTime())
  if (oldest || files.length === 0) return { ...waiting, oldest: oldest && of(oldest.file, oldest.at), undated: false }
  let oldestFile: DatedFile | undefined
  for (const file of files.slice(0, maxDated)) {
    const reply = await link.control.ask(`MDTM ${file.name}`, wait(link.context))
    // Not there any more: it waits no longer.
    if (reply.code === 550) continue
    const at = reply.code === 213 ? stamp(reply.text) : undefined
    if (at === undefined) break
    const one = of(file, at)
    if (oldestFile === undefined || one.ms > oldestFile.ms) oldestFile = one
  }
  return { ...waiting, oldest: oldestFile, undated: oldestFile === undefined }
}

/** `213 20261121042700` and its like (RFC 3659, 2.3): always UTC. */
export function stamp(text: string): Date | undefined {
  const [, year, month, day, hour, minute, second] = /^213 (\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)/.exec(text) ?? []
  return year === undefined ? undefined : sound(new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`))
}
