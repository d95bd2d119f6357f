import { Fault } from '../core/errors.ts'
import { secretName } from '../core/settings/index.ts'
import { argument, required } from './flags.ts'

export const nameArg = {
  name: argument({ name: 'NAME', description: 'As svc.yaml names it: {keychain: NAME}', ignoreStdin: true }),
}

/** Throws `Fault` Usage for an invalid secret name. */
export function checkedSecretName(input: string | undefined): string {
  const name = required(input, 'NAME')
  if (secretName.test(name)) return name
  throw new Fault('Usage', 'that cannot be the name of a secret', {
    hints: ['Letters, digits and _ . @ - , at most 100. The secret itself is asked for, and never an argument.'],
  })
}
