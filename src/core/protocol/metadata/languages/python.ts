import type { OperationSpec } from '../../index.ts'
import { callerOf, usualVerb } from '../schemas.ts'
import { language } from './language.ts'
import { commonOptions, serviceStackTypes } from './options.ts'
import {
  errorTypes,
  type SourceClass,
  type SourceEnum,
  type SourceType,
  type TypeMember,
  typeWriter,
} from './source.ts'

/**
 * The client library reads snake_case fields from camelCase names, and fields of any other style only from exactly
 * their names. So at a server with names in camelCase the fields are in snake_case, and at others they have the names
 * that the server writes.
 */
export const python = language({
  title: 'Python',
  client: 'servicestack',
  comment: { open: '"""', close: '"""', line: '#' },
  options: { ...serviceStackTypes, ...commonOptions } as const,
  library: ({ names }) => (names === 'camelCase' ? errorTypes : []),
  write: ({ types, values, described }) => {
    const snake = described.names === 'camelCase'
    const parts = types.map((type) =>
      type.kind === 'enum' ? enumeration(type) : declaration(type, snake, values.AddDescriptionAsComments),
    )
    return [importsOf(types), ...parts].join('\n\n')
  },
})

/** Annotations stay text, because a field may have the name of its type. */
const importsOf = (types: readonly SourceType[]): string => `from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from enum import Enum
from typing import Dict, List, Optional

from dataclasses_json import LetterCase, Undefined, config, dataclass_json
from servicestack import IGet, IPost, IReturn${types.some(({ name }) => name === 'ResponseStatus') ? '' : ', ResponseError, ResponseStatus'}
`

const enumeration = ({ name, values }: SourceEnum): string => `class ${name}(str, Enum):
${values.map((value) => `    ${snakeCase(value).toUpperCase()} = '${value}'\n`).join('')}`

function declaration({ name, members, row }: SourceClass, snake: boolean, described: boolean): string {
  const bases = row ? `(IReturn[${row.response.name}], ${usualVerb(row) === 'GET' ? 'IGet' : 'IPost'})` : ''
  const doc = row && described ? `    """${row.summary}. ${callerOf(row)} may call it."""\n` : ''
  const body = members.map((member) => property(member, snake, described)).join('')
  return `${row ? routes(row) : ''}@dataclass_json(${snake ? 'letter_case=LetterCase.CAMEL, ' : ''}undefined=Undefined.EXCLUDE)
@dataclass
class ${name}${bases}:
${doc}${body}${doc === '' && body === '' ? '    pass\n' : ''}`
}

const routes = (row: OperationSpec): string =>
  row.routes.map(({ path, verbs }) => `# @Route("${path}", "${verbs.join(',')}")\n`).join('')

function property(member: TypeMember, snake: boolean, described: boolean): string {
  const { wire, schema, required, constant } = member
  const field = snake ? snakeCase(wire) : wire
  const name = reserved.has(field) ? `${field}_` : field
  const value = constant ?? 'None'
  // How the client library derives the name in JSON from the field's.
  const derived = snake ? camelCase(name) : name
  const initial = derived === wire ? value : `field(default=${value}, metadata=config(field_name='${wire}'))`
  return `    ${name}: Optional[${typeOf(schema)}] = ${initial}${required && described ? '  # Required' : ''}\n`
}

/** Every capital letter becomes an underscore and a small letter, as in the client library, so that it reads the name. */
const snakeCase = (name: string): string =>
  name.charAt(0).toLowerCase() + name.slice(1).replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const camelCase = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

const reserved = new Set(
  `False None True and as assert async await break class continue def del elif else except finally for from global if import
  in is lambda nonlocal not or pass raise return try while with yield field config dataclass`.split(/\s+/),
)

const typeOf = typeWriter({
  text: 'str',
  flag: 'bool',
  integer: 'int',
  number: 'float',
  date: 'datetime.datetime',
  duration: 'datetime.timedelta',
  map: 'Dict[str, str]',
  list: (item) => `List[${item}]`,
})
