import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import { expect } from 'vitest'
import { answersOf, type CommandAnswer } from '../../../src/cli/help/records.ts'
import { objectOf } from '../../../src/cli/render/document.ts'
import { errorShape } from '../../../src/cli/render/errors.ts'
import { commands } from '../../../src/registry.ts'

const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, allErrors: true })
ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

/** The output of every command for scripts, by its name. */
export const answers: ReadonlyMap<string, CommandAnswer> = new Map(
  (await answersOf(commands)).map((answer) => [answer.name, answer]),
)

/**
 * The contradictions to the JSON Schema of a command, `error` for a failure. A member that it lacks is an error, too.
 */
export function schemaErrors(name: string, document: unknown): readonly ErrorObject[] {
  const validate = validators.get(name) ?? validatorOf(name)
  validators.set(name, validate)
  validate(document)
  return validate.errors ?? []
}

/** By the name of the command: compiling one takes a hundred times as long as a validation. */
const validators = new Map<string, ValidateFunction>()

function validatorOf(name: string): ValidateFunction {
  const schema = name === 'error' ? objectOf({ error: errorShape }) : answers.get(name)?.schema()
  if (schema === undefined) throw new Error(`svc ${name} has no JSON Schema`)
  return ajv.compile(JSON.parse(JSON.stringify(schema)))
}

/** The JSON document that a command printed. Fails if it contradicts the command's JSON Schema. */
export function documentOf<T>(name: string, stdout: string): T {
  const document = JSON.parse(stdout) as T
  expect(schemaErrors(name, document), name).toEqual([])
  return document
}
