import { said } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import { system32File } from '../../system/end-process.ts'
import { plainEnvironment, runProgram } from '../../system/run-program.ts'
import { launchctl, launchctlArgs, parseLaunchd } from './launchd.ts'
import type { ServiceState } from './state.ts'
import { parseSystemd, systemctlArgs, systemctlPlaces } from './systemd.ts'
import { parseWindows, scArgs } from './windows.ts'

type Manager = {
  readonly file: string
  readonly args: readonly string[]
  readonly parse: (text: string) => ServiceState | undefined
}

/** Bytes of what a manager says that are kept. */
const keep = 64 * 1024

/**
 * What this machine's manager says of a service. Throws ProbeError `internal` where there is none, and
 * `protocol` when what it says cannot be read.
 */
export async function askManager(service: string, signal: AbortSignal): Promise<ServiceState> {
  const { file, args, parse } = await managerFor(service)
  const ended = await runProgram({ file, args, env: plainEnvironment(), keep }, signal)
  const state = parse(ended.stdout) ?? parse(ended.stderr)
  if (state) return state
  const heard = [ended.stderr, ended.stdout].map((text) => said(text.trim())).find((text) => text !== '') ?? 'nothing'
  throw new ProbeError('protocol', `${file} does not tell how the service is: ${heard}`)
}

async function managerFor(service: string): Promise<Manager> {
  switch (process.platform) {
    case 'win32':
      return { file: system32File('sc.exe'), args: scArgs(service), parse: parseWindows }
    case 'darwin':
      return { file: launchctl, args: launchctlArgs(service), parse: parseLaunchd }
    case 'linux':
      return {
        file: await systemctl(),
        args: systemctlArgs(service),
        parse: (text) => parseSystemd(text, Number(process.hrtime.bigint() / 1_000n)),
      }
    default:
      throw new ProbeError('internal', `services of ${process.platform} cannot be asked for: use the kind process`)
  }
}

/** Where systemd runs the machine, this folder is there: systemctl alone may lie in an image that runs without. */
const running = '/run/systemd/system'

async function systemctl(): Promise<string> {
  const { access } = await import('node:fs/promises')
  const there = async (path: string): Promise<boolean> =>
    await access(path).then(
      () => true,
      () => false,
    )
  const [runs, ...found] = await Promise.all([running, ...systemctlPlaces].map(there))
  if (!runs) {
    throw new ProbeError(
      'internal',
      'systemd does not run here (as in most containers), so no service can be asked for: use the kind process',
    )
  }
  const file = systemctlPlaces[found.indexOf(true)]
  if (file === undefined) throw new ProbeError('internal', `systemctl is not at ${systemctlPlaces.join(' or ')}`)
  return file
}
