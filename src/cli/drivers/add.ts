import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, delimiter, dirname, join } from 'node:path'
import { Fault } from '../../core/base/errors.ts'
import { fileProblem } from '../../core/base/file-errors.ts'
import { makeFolder } from '../../core/base/own-files.ts'
import { isAlive } from '../../core/base/running-process.ts'
import { sanitizeLine } from '../../core/base/sanitize.ts'
import {
  type DriverName,
  type DriverSearch,
  distrustOf,
  driverFolders,
  driverSearch,
  drivers,
  findDriver,
  type ShippedDriver,
  shippedDriver,
  targetFolder,
} from '../../core/checks/drivers/index.ts'
import type { Io } from '../io/io.ts'
import { homeOf, machine } from '../io/process.ts'
import type { AddedDriver } from './list.ts'

/**
 * Installs a driver. It is complete in a folder of its own before it gets the name under which svc looks for it, and
 * earlier versions are removed afterwards: whatever interrupts this, the old driver or the new one is there. Throws Fault
 * `Local` or `Unreachable`.
 */
export async function addDriver(
  name: DriverName,
  io: Io,
  signal: AbortSignal,
  say: (line: string) => void,
): Promise<AddedDriver> {
  const shipped = shippedDriver(name)
  if (!shipped)
    throw new Fault('Local', 'dist/drivers.json is missing', { hints: ['npm run build, or install svc again.'] })
  const search = driverSearch(io.env, homeOf(io.env))
  const present = alreadyThere(name, shipped, search)
  if (present) return present
  const parent = targetFolder(search)
  prepare(parent, search)
  removeLeftovers(parent, name)
  say(`Installing ${drivers[name]} ${shipped.version} with npm in ${parent}`)
  const folder = onDisk(parent, () => mkdtempSync(join(parent, `.${name}-${machine.pid}-`)))
  try {
    onDisk(folder, () => {
      for (const [file, content] of Object.entries(shipped.files)) writeFileSync(join(folder, file), content)
      if (isForAll(parent, search)) chmodSync(folder, 0o755)
    })
    await npmCi(folder, io, signal)
    put(name, folder, join(parent, shipped.folder), search)
  } finally {
    remove(folder)
  }
  for (const entry of readdirSync(parent)) {
    if (entry.startsWith(`${name}-`) && entry !== shipped.folder) retire(join(parent, entry))
  }
  const { driver, lack } = findDriver(name, search)
  if (driver) return { name, version: driver.version, path: driver.path, added: true }
  throw new Fault('Local', `the driver for ${name} is installed in ${parent}, but ${lack.reason}`)
}

function alreadyThere(name: DriverName, { folder }: ShippedDriver, search: DriverSearch): AddedDriver | undefined {
  const { driver } = findDriver(name, search)
  if (!driver || (driver.folder !== undefined && basename(driver.folder) !== folder)) return undefined
  return { name, version: driver.version, path: driver.path, added: false }
}

/** Whether it is the folder of root, whose drivers all accounts load. */
const isForAll = (folder: string, search: DriverSearch): boolean => folder === driverFolders(search).system

/** Makes the folder of the drivers, and refuses one in which another account could put a program. */
function prepare(folder: string, search: DriverSearch): void {
  onDisk(folder, () => {
    if (isForAll(folder, search)) mkdirSync(folder, { recursive: true, mode: 0o755 })
    else makeFolder(folder)
  })
  const distrust = distrustOf([folder], search)
  if (!distrust) return
  throw new Fault('Local', `The folder of the drivers is not trusted: ${distrust.reason}`, {
    hints: ['Anyone who can write it controls what svc runs.', ...distrust.cures],
  })
}

/** Folders of earlier attempts whose process has ended. */
function removeLeftovers(parent: string, name: DriverName): void {
  for (const entry of readdirSync(parent)) {
    const [, pid] = entry.startsWith(`.${name}-`) ? (/-(\d+)-[^-]*$/.exec(entry) ?? []) : []
    if (pid !== undefined && (Number(pid) === machine.pid || !isAlive(Number(pid)))) remove(join(parent, entry))
  }
}

/** Gives the complete folder its name. Another process that was faster has put the same there. */
function put(name: DriverName, folder: string, target: string, search: DriverSearch): void {
  try {
    renameSync(folder, target)
  } catch (error) {
    const { driver } = findDriver(name, search)
    if (driver?.folder === target) return
    if (!['EEXIST', 'ENOTEMPTY', 'EPERM'].includes(String((error as NodeJS.ErrnoException).code))) {
      throw local(target, error)
    }
    // Not what svc put there.
    retire(target)
    onDisk(target, () => renameSync(folder, target))
  }
}

/** Takes the name away first, so that nobody finds a part of it. */
function retire(folder: string): void {
  const old = join(dirname(folder), `.${basename(folder)}-${machine.pid}-old`)
  try {
    renameSync(folder, old)
  } catch {
    // Another process was faster.
    return
  }
  remove(old)
}

function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  } catch {
    // The next command tries again.
  }
}

/** Bytes of npm's messages that are kept. */
const maxOutput = 65_536

/** Runs npm in the folder. Throws when it fails, Interrupted when the signal aborts. */
async function npmCi(folder: string, { env }: Io, signal: AbortSignal): Promise<void> {
  const args = ['ci', '--ignore-scripts', '--omit=dev', '--no-global', '--no-audit', '--no-fund', '--loglevel=error']
  // npm runs on svc's own Node: an old one may refuse packages. Nobody else may write the files.
  const path = [dirname(machine.execPath), env['PATH'] ?? env['Path'] ?? ''].join(delimiter)
  const umask = machine.umask(0o022)
  let output = ''
  try {
    const child = spawn('npm', args, {
      cwd: folder,
      env: { ...env, PATH: path, INIT_CWD: folder, npm_config_local_prefix: folder, npm_config_prefix: undefined },
      stdio: ['ignore', 'ignore', 'pipe'],
      shell: machine.platform === 'win32',
      signal,
    })
    child.stderr.on('data', (part: Buffer) => {
      output = (output + part.toString('utf8')).slice(-maxOutput)
    })
    const status = await new Promise<number | null>((resolve, reject) => {
      child.once('error', (error: NodeJS.ErrnoException) => (error.name === 'AbortError' ? undefined : reject(error)))
      child.once('close', resolve)
    })
    signal.throwIfAborted()
    if (status !== 0) throw npmFault(output, status)
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof Fault) throw error
    throw new Fault(
      'Local',
      `npm cannot be started: ${isAbsent(error) ? 'it is not on the PATH' : fileProblem(error)}`,
      {
        hints: ['Install npm, which comes with Node.js. The Debian package of svc contains all drivers.'],
        cause: error,
      },
    )
  } finally {
    machine.umask(umask)
  }
}

const isAbsent = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'

const noNetwork = /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ENOTCACHED)\b/

function npmFault(output: string, status: number | null): Fault {
  const lines = output
    .split('\n')
    .map((line) =>
      sanitizeLine(line.replace(/^npm (?:error|ERR!) ?/, ''))
        .slice(0, 200)
        .trim(),
    )
    .filter((line) => line !== '' && !/^at |complete log of this run|debug-\d/.test(line))
  const hints = lines.slice(0, 6).map((line) => `npm: ${line}`)
  if (/\bENOSPC\b/.test(output)) return new Fault('Local', 'npm cannot install the driver: the disk is full', { hints })
  if (noNetwork.test(output)) {
    return new Fault('Unreachable', 'npm does not reach its registry', {
      hints: [...hints, 'Check the network, and registry and proxy in .npmrc. What was installed before remains.'],
    })
  }
  return new Fault('Local', `npm cannot install the driver (exit code ${status ?? 'unknown'})`, { hints })
}

function onDisk<T>(path: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    throw local(path, error)
  }
}

const local = (path: string, error: unknown): Fault =>
  new Fault('Local', `${path} ${fileProblem(error)}`, {
    hints: ['SVC_HOME names another folder for this account. Root installs a driver for all accounts.'],
    cause: error,
  })
