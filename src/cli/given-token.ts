import { Fault } from '../core/errors.ts'
import type { Target } from './target.ts'
import { type Environment, variable } from './variable.ts'

/**
 * `SVC_TOKEN`, for the server that this very call names (K5): with a current profile alone it could reach a server that
 * nobody thought of. Throws `Fault` Usage; the token is not repeated.
 */
export function givenToken(target: Target, env: Environment): string | undefined {
  const token = variable(env, 'SVC_TOKEN')?.trim()
  if (token === undefined || target.kind === 'local') return undefined
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new Fault('Usage', 'SVC_TOKEN holds blanks or letters that no token has', {
      hints: ['Give the token alone, on one line.'],
    })
  }
  if (target.origin !== 'current profile') return token
  throw new Fault('Usage', 'SVC_TOKEN is set, and nothing says which server it is for', {
    hints: ['Name the server with --server, SVC_SERVER or --profile; or unset SVC_TOKEN.'],
  })
}

/** While SVC_TOKEN is set, what changes the stored sign-in would seem to have no effect. */
export function refuseGivenToken(command: 'login' | 'logout', env: Environment): void {
  if (variable(env, 'SVC_TOKEN') === undefined) return
  throw new Fault('Usage', `SVC_TOKEN is set, so commands use that and no stored sign-in: svc ${command} is refused`, {
    hints: ['unset SVC_TOKEN'],
  })
}
