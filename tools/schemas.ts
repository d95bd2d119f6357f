/**
 * Writes the JSON Schemas that the packages contain, from the tables that the program itself reads: of svc.yaml, of the document of
 * a run, and of what each command prints with `--json`.
 *   node tools/schemas.ts [--into FOLDER]        without --into in dist/schemas
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { answersOf, type CommandAnswer } from '../src/cli/help/records.ts'
import { objectOf } from '../src/cli/render/document.ts'
import { errorShape } from '../src/cli/render/errors.ts'
import { configSchema, fleetSchema } from '../src/core/config/index.ts'
import { type Dto, RunDocument, runMediaType, runVersion, type Schema, schemaOf } from '../src/core/protocol/index.ts'
import { commands } from '../src/registry.ts'

/** The run document between two svc, as JSON Schema. Members that are not listed are allowed: readers pass over them. */
export function runSchema(): object {
  const member = (schema: Schema): object => {
    switch (schema.kind) {
      case 'dto':
        return object(schema)
      case 'list':
        return { type: 'array', items: member(schema.item) }
      case 'map':
        return { type: 'object', additionalProperties: { type: 'string' } }
      case 'choice':
        return { enum: schema.values }
      case 'date':
        return { type: 'string', format: 'date-time' }
      case 'number':
        return { type: schema.integer ? 'integer' : 'number' }
      default:
        return { type: schema.kind === 'flag' ? 'boolean' : 'string' }
    }
  }
  const object = ({ fields }: Dto): object => ({
    type: 'object',
    required: Object.entries(fields).flatMap(([name, field]) => (field.kind === 'required' ? [name] : [])),
    properties: Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, member(schemaOf(field))])),
  })
  const { properties, ...rest } = object(RunDocument) as { readonly properties: object }
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: `A run of svc (${runMediaType})`,
    ...rest,
    properties: { ...properties, version: { const: runVersion } },
  }
}

/** `roles assign --from-file` → `json/roles-assign-from-file.schema.json`. */
function schemaFile(name: string): string {
  return `json/${name.replaceAll(/[ -]+/g, '-')}.schema.json`
}

function jsonSchema({ name, schema }: Pick<CommandAnswer, 'name' | 'schema'>): object {
  const title = name === 'error' ? 'A failure of any command, with --json' : `svc ${name} --json`
  // Readers accept members that later versions add: only the tests of svc refuse them.
  const open = (key: string, value: unknown): unknown =>
    key === 'additionalProperties' && value === false ? undefined : value
  const document = { $schema: 'https://json-schema.org/draft/2020-12/schema', title, ...schema() }
  return JSON.parse(JSON.stringify(document, open)) as object
}

/** Every schema, by its path below `dist/schemas`. */
export async function schemas(): Promise<Readonly<Record<string, object>>> {
  const answers = [...(await answersOf(commands)), { name: 'error', schema: () => objectOf({ error: errorShape }) }]
  return {
    'svc.schema.json': await configSchema(),
    'fleet.schema.json': await fleetSchema(),
    'run.schema.json': runSchema(),
    ...Object.fromEntries(answers.map((answer) => [schemaFile(answer.name), jsonSchema(answer)])),
  }
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { into: { type: 'string' } } })
  const folder = values.into ?? fileURLToPath(new URL('../dist/schemas', import.meta.url))
  await mkdir(join(folder, 'json'), { recursive: true })
  for (const [name, schema] of Object.entries(await schemas()))
    await writeFile(join(folder, name), `${JSON.stringify(schema, null, 2)}\n`)
}
