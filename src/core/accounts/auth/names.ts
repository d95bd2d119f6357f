import { emptyField, Fault, type FieldFault, invalidField } from '../../base/errors.ts'
import { hasInvisible, nameMistake } from '../../base/names.ts'
import { permissionMistake } from '../../protocol/index.ts'

/** Characters. */
const maxEmail = 254

/** The problems of one value, as fields of the response; empty when there are none. */
export type Problems = readonly FieldFault[]

/** The fault that names every field with a problem. */
export const invalidFields = (problems: Problems): Fault =>
  new Fault('BadRequest', problems.map(({ Message }) => Message).join('; '), {
    errorCode: 'ValidationException',
    fields: problems,
  })

/** Throws that fault, if there are problems. */
export function refuseFields(problems: Problems): void {
  if (problems.length > 0) throw invalidFields(problems)
}

/** Checks a name: not blank, not too long, and without characters that hide what it is. */
export function nameProblems(field: string, name: string): Problems {
  if (name.trim() === '') return [emptyField(field)]
  const mistake = nameMistake(name)
  return mistake === undefined ? [] : [invalidField(field, mistake)]
}

/**
 * In the audit, `local:` marks accounts of this machine, and `-` an anonymous caller. No user name may look like
 * these.
 */
export function userNameProblems(field: string, name: string): Problems {
  const problems = nameProblems(field, name)
  if (problems.length > 0) return problems
  return name === '-' || /^local:/i.test(name) ? [invalidField(field, 'is reserved for the audit log')] : []
}

export function emailProblems(field: string, email: string): Problems {
  if (email.length > maxEmail || hasInvisible(email) || !/^[^\s@]+@[^\s@]+$/u.test(email)) {
    return [invalidField(field, 'must be an e-mail address, as in ann@example.com')]
  }
  return []
}

export const listProblems = (field: string, names: readonly string[] | undefined): Problems =>
  (names ?? []).flatMap((name) => nameProblems(field, name)).slice(0, 1)

/** As `listProblems`; a permission for a server type must also name one. */
export function permissionProblems(permissions: readonly string[] | undefined): Problems {
  const problems = listProblems('Permissions', permissions)
  if (problems.length > 0) return problems
  const mistake = permissions?.map(permissionMistake).find((each) => each !== undefined)
  return mistake === undefined ? [] : [{ ErrorCode: 'InvalidValue', FieldName: 'Permissions', Message: mistake }]
}

/** A subject as OpenID Connect allows it: at most 255 ASCII characters, of which svc accepts the visible ones and spaces. */
export const isSubject = (text: unknown): text is string =>
  typeof text === 'string' && /^[\x20-\x7e]{1,255}$/.test(text)

export const subjectProblems = (subject: string): Problems =>
  isSubject(subject) ? [] : [invalidField('Subject', 'must have 1 to 255 visible ASCII characters')]
