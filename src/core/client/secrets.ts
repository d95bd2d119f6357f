import { Fault } from '../errors.ts'
import type { Credential } from '../service.ts'

/** What of a request must not come back in a message: a server may say again whatever it was told. */
const secretFields = ['Password', 'AccessToken', 'AccessTokenSecret', 'RefreshToken', 'response'] as const
/** Shorter ones stand by chance in any sentence. */
const shortest = 4

/** Everything secret that a call sends. */
export function secretsOf(request: unknown, credentials: readonly (Credential | undefined)[]): readonly string[] {
  const values = request as Readonly<Record<string, unknown>>
  const sent = secretFields.flatMap((name) => (typeof values[name] === 'string' ? [values[name]] : []))
  const presented = credentials.flatMap((one) => (one ? [one.kind === 'bearer' ? one.token : one.secret] : []))
  return [...sent, ...presented].filter((secret) => secret.length >= shortest)
}

/** The same fault without the secrets, also where only their beginning is quoted. */
export function withoutSecrets(fault: Fault, secrets: readonly string[]): Fault {
  const parts = secrets.flatMap((secret) => (secret.length > 24 ? [secret, secret.slice(0, 24)] : [secret]))
  const holds = (text: string): boolean => parts.some((part) => text.includes(part))
  const clean = (text: string): string => parts.reduce((left, part) => left.replaceAll(part, '***'), text)
  const { fields = [], hints = [] } = fault.details
  const told = [
    fault.message,
    fault.errorCode,
    ...hints,
    ...fields.flatMap((field) => [field.ErrorCode, field.FieldName, field.Message]),
  ]
  if (!told.some(holds)) return fault
  return new Fault(fault.fault, clean(fault.message), {
    ...fault.details,
    hints: hints.map(clean),
    fields: fields.map((field) => ({
      ErrorCode: clean(field.ErrorCode),
      FieldName: clean(field.FieldName),
      Message: clean(field.Message),
    })),
    errorCode: fault.details.errorCode === undefined ? undefined : clean(fault.details.errorCode),
  })
}
