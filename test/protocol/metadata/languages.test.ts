import { expect, test } from 'vitest'
import { dto, type Field, list, map, operations, text } from '../../../src/core/protocol/index.ts'
import { type LanguageName, languages } from '../../../src/core/protocol/metadata/index.ts'
import type { SourceType } from '../../../src/core/protocol/metadata/languages/source.ts'

const described = { base: 'http://localhost:1', names: 'PascalCase' as const }
const member = (name: string, schema: Exclude<Field, { kind: 'required' }> = text) => ({
  name,
  wire: name,
  schema,
  required: false,
  constant: undefined,
})
const names = ['class', 'in', 'when', 'lambda', 'object', 'field', 'responseType', 'default']
const Part = dto('Part', { Name: text })
const types: readonly SourceType[] = [
  { kind: 'class', name: 'Part', members: [member('Name'), member('Class')], row: undefined },
  {
    kind: 'class',
    name: 'Words',
    members: [...names.map((name) => member(name)), member('Parts', list(Part)), member('Lists', list(list(text)))],
    row: undefined,
  },
  { kind: 'class', name: 'Nothing', members: [], row: undefined },
]
const source = (name: LanguageName, style: 'PascalCase' | 'camelCase' = 'PascalCase'): string =>
  languages[name].source(types, languages[name].read([]), { ...described, names: style })

test('R6 Java: a reserved name gets an underscore and an annotation with the name in JSON, and no accessor of Object is overridden', () => {
  const java = source('java')
  expect(java).toContain('@SerializedName("class") public String class_ = null;')
  expect(java).toContain('@SerializedName("default") public String default_ = null;')
  expect(java).not.toMatch(/ getClass\(\)| getResponseType\(\)/)
  expect(java).toContain('public ArrayList<Part> Parts = null;')
  expect(java).toContain('public ArrayList<ArrayList<String>> Lists = null;')
})

test('R6 Kotlin: a reserved name gets an underscore and an annotation with the name in JSON', () => {
  const kotlin = source('kotlin')
  expect(kotlin).toContain('@SerializedName("when") var when_:String? = null')
  expect(kotlin).toContain('@SerializedName("object") var object_:String? = null')
  expect(kotlin).toContain('var Parts:ArrayList<Part> = ArrayList<Part>()')
})

test('R6 C#: a reserved name gets an at sign, which is not part of the name', () => {
  const csharp = source('csharp')
  expect(csharp).toContain('string @class { get; set; }')
  expect(csharp).toContain('string when { get; set; }')
  expect(csharp).toContain('List<List<string>> Lists')
})

test('R6 Python: a reserved name gets an underscore and the name in JSON, and fields may hide nothing that the class uses', () => {
  for (const style of ['PascalCase', 'camelCase'] as const) {
    const python = source('python', style)
    expect(python).toContain("    class_: Optional[str] = field(default=None, metadata=config(field_name='class'))")
    expect(python).toContain("    field_: Optional[str] = field(default=None, metadata=config(field_name='field'))")
    expect(python).toMatch(/class Nothing:\n {4}pass\n/)
  }
})

test('R6 TypeScript: members may have any name', () => {
  expect(source('typescript')).toContain('public class?: string')
  expect(source('typescript.d')).toContain('class?: string')
})

test('R6 no text of the interface can end or begin a comment', () => {
  for (const { summary, routes, request } of Object.values(operations)) {
    const texts = [summary, ...routes.map(({ path }) => path), ...Object.keys(request.fields)]
    for (const part of texts) expect(part).not.toMatch(/\*\/|\/\*|"|\\|\n/)
  }
})

test('R6 maps and lists have a type in each language', () => {
  const collections: readonly SourceType[] = [
    { kind: 'class', name: 'Both', members: [member('Map', map), member('List', list(text))], row: undefined },
  ]
  const typed = (name: LanguageName) => languages[name].source(collections, languages[name].read([]), described)
  expect(typed('csharp')).toContain('Dictionary<string, string> Map')
  expect(typed('java')).toContain('HashMap<String,String> Map')
  expect(typed('kotlin')).toContain('Map:HashMap<String,String> = HashMap<String,String>()')
  expect(typed('python')).toContain('Map: Optional[Dict[str, str]]')
  expect(typed('typescript.d')).toContain('Map?: { [index: string]: string }')
})
