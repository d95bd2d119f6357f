import { exits, Fault, StoreOutage } from '../../core/base/errors.ts'
import { fileMeaning } from '../../core/base/file-errors.ts'
import type { Io } from '../io/io.ts'
import { machine } from '../io/process.ts'

type ExitReport = {
  readonly json: boolean
  readonly debug: boolean
  readonly target?: string | undefined
  /** The command line, whose target flags the hints repeat. */
  readonly argv?: readonly string[]
  /** The command, for hints about its help: `users add`. */
  readonly command?: string | undefined
}

/**
 * Turns a failure into an exit code and reports it: what, why, what next. With `--json`, the single JSON value on
 * stdout is the error.
 */
export async function settle(error: unknown, report: ExitReport, io: Io): Promise<void> {
  // Loaded only for failures, which are rare.
  const { renderError } = await import('../render/errors.ts')
  const { repeatTargetFlags, shellWord } = await import('../render/hints.ts')
  const { stdout, stderr } = io
  const { argv = [], command = 'COMMAND' } = report
  const failure = asFault(error)
  const hints = failure?.details.hints?.map((hint) =>
    hint === helpHint
      ? `svc ${command} --help shows what it takes.`
      : hint.startsWith('sudo -u ')
        ? hint.replace(
            / svc COMMAND$/,
            () => ` ${[...variables(io.env), 'svc', ...command.split(' '), ...argv].map(shellWord).join(' ')}`,
          )
        : repeatTargetFlags(hint, argv, command),
  )
  const fault = failure && new Fault(failure.fault, failure.message, { ...failure.details, ...(hints && { hints }) })
  io.exitCode = fault ? exitOf(fault) : exits.defect.code
  const reported = fault ?? error
  const written = report.json && stdout.write(`${JSON.stringify(renderError.json(reported, report.target))}\n`, 'json')
  if (!written) {
    const { colour, columns: width } = stderr
    stderr.write(`${renderError.text(reported, { colour, target: report.target, width })}\n`)
  }
  if (report.debug && error instanceof Error) stderr.write(`${error.stack ?? error.message}\n`)
}

/** The variables that choose the store: sudo removes them. */
const variables = (env: Io['env']): readonly string[] =>
  ['SVC_HOME', 'SVC_STORE'].flatMap((name) => (env[name] === undefined ? [] : [`${name}=${env[name]}`]))

/** Reports an answer that could not be written. */
export async function reportLostOutput(error: unknown, { stderr }: Io): Promise<void> {
  const { renderError } = await import('../render/errors.ts')
  const { errno, message } = error as NodeJS.ErrnoException
  const reason = errno === undefined ? message : machine.errorText(errno)
  const fault = new Fault('Local', `cannot write to standard output: ${reason}`)
  stderr.write(`${renderError.text(fault, { colour: stderr.colour, width: stderr.columns })}\n`)
}

/** The exit code of a failure. That of an interruption depends on the signal. */
export function exitOf(fault: Fault): number {
  return fault.fault === 'Interrupted' && fault.message.includes('SIGTERM') ? 143 : fault.exitCode
}

/** A failure as a Fault, or undefined for a defect. */
export function asFault(error: unknown): Fault | undefined {
  // A server is unavailable then. A command ends because of this machine.
  if (error instanceof StoreOutage && error.isFile) return localOutage(error)
  if (error instanceof Fault) return unwrapped(error)
  return error instanceof Error ? shortageOf(error) : undefined
}

/** Resources that a machine can run out of, and the remedy. Such an error is not a defect, wherever it occurs. */
const shortages: Readonly<Record<string, { readonly what: string; readonly remedy: string }>> = {
  EMFILE: {
    what: 'svc has too many files open',
    remedy: 'Raise the limit of open files of this process: ulimit -n, or LimitNOFILE= of its systemd unit.',
  },
  ENFILE: {
    what: 'this machine has too many files open',
    remedy: 'End the processes that hold them, or raise fs.file-max.',
  },
  ENOMEM: { what: 'the machine has no free memory', remedy: 'End processes that use it.' },
  ENOSPC: { what: 'the disk is full', remedy: 'Free some space.' },
  EDQUOT: { what: 'the disk quota of this account is exhausted', remedy: 'Free some space.' },
  EROFS: {
    what: 'the file system is read-only',
    remedy: 'Set SVC_HOME to a folder that this account can write.',
  },
  EACCES: { what: 'this account has no permission', remedy: 'Run svc as an account that has it.' },
}
function localOutage({ message, details: { cause } }: StoreOutage): Fault {
  const remedies = cause instanceof Error ? (shortageOf(cause)?.details.hints ?? []) : []
  return new Fault('Local', message, { hints: remedies, cause })
}

/** The result code of SQLite for a full disk. */
const sqliteFull = 13

function shortageOf(error: Error): Fault | undefined {
  const { code, errcode, path } = error as NodeJS.ErrnoException & { readonly errcode?: unknown }
  const shortage = errcode === sqliteFull ? shortages['ENOSPC'] : code === undefined ? undefined : shortages[code]
  if (shortage === undefined) return undefined
  const { what, remedy } = shortage
  const meaning = fileMeaning(error)
  const message = path !== undefined && meaning !== undefined ? `${path} ${meaning}` : what
  return new Fault('Local', message, { hints: [remedy], cause: error })
}

/** Stands for the help of the command that failed. */
export const helpHint = 'svc COMMAND --help shows what it takes.'

/**
 * Unwraps errors of a flag's parser, which oclif wraps: `Parsing --type
 *
 * \t<message>
 *
 * See more help …`.
 */
function unwrapped(fault: Fault): Fault {
  const [, message] = /^Parsing --\S+ ?\n\t([\s\S]*?)\n?See more help with --help$/.exec(fault.message) ?? []
  return message === undefined ? fault : new Fault(fault.fault, message, fault.details)
}
