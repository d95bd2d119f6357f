import { Fault } from '../core/errors.ts'

/** An argument that must be there. `what` is its name in the help, e.g. NAME. */
export function required(value: string | undefined, what: string): string {
  if (value !== undefined && value.trim() !== '') return value
  throw new Fault('Usage', `${what} is ${value === undefined ? 'missing' : 'empty'}`, {
    hints: ['svc COMMAND --help shows the arguments of a command.'],
  })
}
