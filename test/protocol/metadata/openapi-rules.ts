/**
 * The demands of OpenAPI 3.1 on the parts of a document that ours consists of, as a JSON Schema of our own; nothing
 * else may be in them.
 */
const text = { type: 'string', minLength: 1 }
const ref = (name: string) => ({ $ref: `#/$defs/${name}` })
const only = (properties: object, required: readonly string[] = []) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})
const mapOf = (values: object, names = '^[a-zA-Z0-9._-]+$') => ({
  type: 'object',
  propertyNames: { pattern: names },
  additionalProperties: values,
})
const when = (condition: object, expected: object, otherwise: object) =>
  Object.fromEntries([
    ['if', condition],
    ['then', expected],
    ['else', otherwise],
  ])
const either = (kind: string, part: object) =>
  when(
    { required: ['$ref'] },
    only({ $ref: { type: 'string', pattern: `^#/components/${kind}/[a-zA-Z0-9._-]+$` } }),
    part,
  )
const httpHeader = only({ description: text, required: { type: 'boolean' }, schema: ref('schema') }, ['schema'])
const media = only({ schema: ref('schema') }, ['schema'])
const content = mapOf(media, '^[a-z]+/[a-z0-9.+-]+$')

export const rules = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  ...only(
    {
      openapi: { type: 'string', pattern: '^3\\.1\\.\\d+$' },
      info: only(
        {
          title: text,
          version: text,
          description: text,
          license: only({ name: text, identifier: text }, ['name', 'identifier']),
        },
        ['title', 'version'],
      ),
      jsonSchemaDialect: { const: 'https://json-schema.org/draft/2020-12/schema' },
      servers: {
        type: 'array',
        minItems: 1,
        items: only({ url: { type: 'string', pattern: '^(?:https?://|/)' } }, ['url']),
      },
      externalDocs: only({ url: { type: 'string', pattern: '^(?:https?://|/)' }, description: text }, ['url']),
      'x-svc-limits': { type: 'object', additionalProperties: { type: 'integer' } },
      tags: { type: 'array', items: only({ name: text, description: text }, ['name']) },
      paths: mapOf(ref('path'), '^/'),
      components: only({
        schemas: mapOf(ref('schema')),
        responses: mapOf(ref('response')),
        parameters: mapOf(ref('parameter')),
        headers: mapOf(httpHeader),
        securitySchemes: mapOf(ref('scheme')),
      }),
      security: ref('security'),
    },
    ['openapi', 'info', 'paths', 'components'],
  ),
  $defs: {
    schema: { type: ['object', 'boolean'] },
    path: only({
      parameters: { type: 'array', items: ref('parameterOrRef'), uniqueItems: true },
      ...Object.fromEntries(['get', 'post', 'delete', 'head', 'options'].map((verb) => [verb, ref('operation')])),
    }),
    operation: only(
      {
        operationId: { type: 'string', pattern: '^[A-Za-z][A-Za-z0-9]*$' },
        'x-svc-alias-of': text,
        summary: text,
        description: text,
        tags: { type: 'array', items: text, minItems: 1 },
        parameters: { type: 'array', items: ref('parameterOrRef'), uniqueItems: true },
        requestBody: only({ content, required: { type: 'boolean' } }, ['content']),
        responses: {
          type: 'object',
          minProperties: 1,
          patternProperties: { '^([1-5][0-9][0-9]|default)$': either('responses', ref('response')) },
          additionalProperties: false,
        },
        security: ref('security'),
      },
      ['operationId', 'responses'],
    ),
    parameterOrRef: either('parameters', ref('parameter')),
    parameter: {
      ...only(
        {
          name: text,
          in: { enum: ['query', 'header', 'path'] },
          description: text,
          required: { type: 'boolean' },
          schema: ref('schema'),
        },
        ['name', 'in', 'schema'],
      ),
      // A path parameter is required; three headers are declared elsewhere and would be ignored here.
      ...when(
        { properties: { in: { const: 'path' } } },
        { properties: { required: { const: true } }, required: ['required'] },
        { properties: { name: { not: { enum: ['Accept', 'Content-Type', 'Authorization'] } } } },
      ),
    },
    response: only({ description: text, headers: mapOf(either('headers', httpHeader)), content }, ['description']),
    scheme: {
      oneOf: [
        only({ type: { const: 'http' }, scheme: text, description: text }, ['type', 'scheme']),
        only({ type: { const: 'apiKey' }, in: { enum: ['header', 'cookie'] }, name: text, description: text }, [
          'type',
          'in',
          'name',
        ]),
      ],
    },
    security: { type: 'array', items: { type: 'object', additionalProperties: { type: 'array', items: text } } },
  },
}
