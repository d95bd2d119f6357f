import type { Reason } from '../../../tools/gates/rules.ts'

/**
 * The text in the output of `svc health` for each reason, in every format but that of Prometheus, which has no text.
 */
export const reasonTexts: Readonly<Record<Reason, RegExp>> = {
  healthy: /./,
  'only itself': /no App server is configured|App: no server configured|only svc itself was checked/,
  unhealthy: /Failure|unhealthy|refused the connection/i,
  'mode too shallow': /no monitor runs in Basic|Failure|unhealthy/i,
  'type not configured': /(?:App|Ftp) is not configured|does not configure (?:App|Ftp)|Failure/,
  'nothing configured': /nothing is configured|configures no monitors/,
  'not proven': /does not report whether it has a configuration/,
  mistake: /types\.Sqll is not a server type/,
  'no such file': /which does not exist/,
  contradiction: /contradicts its HTTP status 503/,
  'type required': /--type is required with this server|--type all needs a server that lists its types/,
  'two places': /cannot be combined|both are set/,
  'empty variable': /is set but empty/,
  'sign-in': /login page|sign.?in/i,
  unreachable: /refuses connections/,
  'no answer': /No answer within/,
  'old answer': /a cache answered/,
  'no operation': /has no health operation/,
}
