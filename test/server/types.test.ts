import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { operations } from '../../src/core/protocol/index.ts'
import { ask, openSite, type Site, startSite } from './site.ts'

let site: Site
beforeAll(async () => {
  site = await startSite()
})
afterAll(() => site.server.stop())

const languages = ['csharp', 'java', 'kotlin', 'python', 'typescript', 'typescript.d'] as const
const text = async (path: string): Promise<string> => {
  const got = await ask(site.port, path)
  expect([path, got.status, got.headers['content-type']]).toEqual([path, 200, 'text/plain; charset=utf-8'])
  return got.text
}
/** The lines of the header after BaseUrl, as update tools read them. */
const optionLines = (source: string): readonly string[] => {
  const lines = source.split('\n')
  const start = lines.findIndex((line) => line.startsWith('BaseUrl: '))
  return lines.slice(
    start + 2,
    lines.findIndex((line, i) => i > start && (line === '*/' || line === '"""')),
  )
}

describe.each(languages)('R6 GET /types/%s', (language) => {
  test('R6 it contains the requests and answers that its client library lacks, and the address of the caller', async () => {
    const source = await text(`/types/${language}`)
    expect(source).toContain(`BaseUrl: http://127.0.0.1:${site.port}\n`)
    for (const { name, response } of Object.values(operations)) {
      // .NET and Java programs use those of the library.
      if (language === 'csharp' && /Auth|Roles|AccessToken/.test(name)) continue
      if (/java|kotlin/.test(language) && name === 'GetAccessToken') continue
      expect(source).toMatch(new RegExp(`\\b(class|interface) ${name}\\b`))
      expect(source).toMatch(new RegExp(`\\b(class|interface) ${response.name}\\b`))
    }
  })

  test('R6 its Date is the time of the request', async () => {
    const before = Date.now()
    const [, date = ''] = /^Date: (.*)$/m.exec(await text(`/types/${language}`)) ?? []
    const time = Date.parse(`${date.replace(' ', 'T')}Z`)
    expect(time).toBeGreaterThan(before - 1000)
    expect(time).toBeLessThanOrEqual(Date.now())
  })

  test('R4 R5 R1 HEAD, OPTIONS, other verbs, letter case and a trailing slash', async () => {
    const path = `/types/${language}`
    const got = await ask(site.port, path)
    const head = await ask(site.port, path, { method: 'HEAD' })
    expect([head.status, head.text, head.headers['content-length']]).toEqual([200, '', got.headers['content-length']])
    const options = await ask(site.port, path, { method: 'OPTIONS' })
    expect([options.status, options.headers.allow]).toEqual([200, 'GET, HEAD, OPTIONS'])
    expect((await ask(site.port, path, { method: 'POST' })).status).toBe(405)
    expect((await ask(site.port, `${path.toUpperCase()}/`)).status).toBe(200)
  })

  test('S1 it is not shown under a foreign host name', async () => {
    const got = await ask(site.port, `/types/${language}`, { headers: { host: 'evil.example' } })
    expect([got.status, got.json.ResponseStatus?.ErrorCode]).toEqual([421, 'MisdirectedRequest'])
  })

  test('R6 an option without a value in the query stands as a comment, one with a value as a line, and it holds on update', async () => {
    const mark = language === 'python' ? '#' : '//'
    expect(optionLines(await text(`/types/${language}`))).toContain(`${mark}IncludeTypes: `)
    const query = 'includetypes=HealthCheckRequest.*&AddResponseStatus=true&Nonsense=1&ExcludeTypes='
    const first = await text(`/types/${language}?${query}`)
    const chosen = optionLines(first).filter((line) => !line.startsWith(mark))
    expect(chosen).toEqual(['AddResponseStatus: True', 'IncludeTypes: HealthCheckRequest.*'])
    const again = new URLSearchParams(chosen.map((line) => line.split(': ') as [string, string]))
    const second = await text(`/types/${language}?${again}`)
    const withoutDate = (source: string) => source.replace(/^Date: .*$/m, '')
    expect(withoutDate(second)).toBe(withoutDate(first))
  })

  test('R6 IncludeTypes and ExcludeTypes select types, alone or with all that they use', async () => {
    const declared = async (query: string) =>
      [
        ...(await text(`/types/${language}?${query}`)).matchAll(
          /^ *(?:(?:export|public|static|open|partial) )*(?:enum class|class|interface|enum|type) (\w+)/gm,
        ),
      ]
        .flatMap(([, name = '']) => (['dtos', 'IReturn'].includes(name) ? [] : [name]))
        .filter((name, i, all) => all.indexOf(name) === i)
        .toSorted()
    expect(await declared('IncludeTypes=GetServerTypes,%20GetServerTypesResponse')).toEqual([
      'GetServerTypes',
      'GetServerTypesResponse',
    ])
    const all = ['GetServerTypes', 'GetServerTypesResponse', 'ServerType']
    expect(await declared('IncludeTypes=GetServerTypes.*')).toEqual(expect.arrayContaining(all))
    expect(await declared('IncludeTypes=GetServerTypes.*')).not.toContain('HealthCheckRequest')
    expect(await declared('IncludeTypes=GetServerTypes.*&ExcludeTypes=ServerType')).not.toContain('ServerType')
    expect(await declared('IncludeTypes=Nothing')).toEqual([])
    expect(await declared('ExcludeTypes=ServerType')).toContain('HealthCheckResponse')
  })

  test('R6 AddResponseStatus, AddImplicitVersion and AddDescriptionAsComments change the types', async () => {
    const plain = await text(`/types/${language}?IncludeTypes=HealthCheckRequest,HealthCheckResponse`)
    const query = 'AddResponseStatus=True&AddImplicitVersion=7&AddDescriptionAsComments=False'
    const changed = await text(`/types/${language}?IncludeTypes=HealthCheckRequest,HealthCheckResponse&${query}`)
    const body = (source: string) => source.slice(source.search(/HealthCheckResponse\b(?!,)/))
    expect(body(plain)).not.toMatch(/\bResponseStatus\b.*\bResponseStatus\b/)
    expect(changed).toMatch(/\bResponseStatus\b.*\bResponseStatus\b/)
    expect(changed).toMatch(/\bVersion\b.*\b7L?\b|\bVersion = 7;/)
    expect(plain).toContain('Anyone may call it')
    expect(changed).not.toContain('Anyone may call it')
  })

  test.each([
    ['IncludeTypes', 'A*/evil();/*'],
    ['IncludeTypes', 'A\n*/'],
    ['ExcludeTypes', 'Svc.ServiceModel/*'],
    ['IncludeTypes', '"""'],
    ['AddResponseStatus', '*/ evil(); /*'],
    ['AddImplicitVersion', '1; evil()'],
    ['IncludeTypes', 'A'.repeat(4001)],
  ])('R6 a value that could leave the comment is refused and not repeated: %s', async (name, value) => {
    const got = await ask(site.port, `/types/${language}?${name}=${encodeURIComponent(value)}`)
    expect(got.status).toBe(400)
    expect(got.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(got.text).not.toMatch(/\*\/|evil|"""|AAAA/)
    // A line break is not a character of a request target, so that no option sees it (S2).
    if (!value.includes('\n')) expect(got.json.ResponseStatus?.Errors?.[0]?.FieldName).toBe(name)
  })

  test('R6 the query changes neither the address, nor the date, nor the version', async () => {
    const source = await text(`/types/${language}?BaseUrl=http://evil.example&Date=1999&Version=9&Tip=evil`)
    expect(source).not.toMatch(/evil|1999|^Version: 9/m)
  })
})

test.each([
  ['java', 'Package', 'com.example;evil'],
  ['java', 'GlobalNamespace', 'a{}class b'],
  ['java', 'DefaultImports', 'java.util.*;class A{}'],
  ['kotlin', 'Package', 'com.example/*'],
  ['kotlin', 'DefaultImports', 'java.util.*\u2028evil'],
  ['csharp', 'GlobalNamespace', 'A}evil{'],
  ['csharp', 'AddNamespaces', 'System;evil'],
  ['typescript', 'GlobalNamespace', 'a{}evil'],
  ['typescript.d', 'GlobalNamespace', "a'+evil"],
  ['csharp', 'MakePartial', 'yes'],
] as const)('R6 code in the option of %s is refused: %s', async (language, name, value) => {
  const got = await ask(site.port, `/types/${language}?${name}=${encodeURIComponent(value)}`)
  expect([got.status, got.json.ResponseStatus?.Errors?.[0]?.FieldName]).toEqual([400, name])
  expect(got.text).not.toContain('evil')
})

test('R6 options that bring code of others into the file are not options', async () => {
  for (const [language, name] of [
    ['python', 'DefaultImports'],
    ['python', 'DataClass'],
    ['python', 'DataClassJson'],
    ['typescript', 'DefaultImports'],
  ])
    expect(await text(`/types/${language}?${name}=evil`)).not.toContain('evil')
})

test.each([
  ['java', 'Package=org.example&GlobalNamespace=api', ['\npackage org.example;\n', '\npublic class api\n']],
  ['java', 'AddPropertyAccessors=False&DefaultImports=java.util.*', ['\nimport java.util.*;\n\npublic']],
  ['java', 'SettersReturnThis=False', ['public void setUserName(String value) { this.UserName = value; }']],
  ['java', '', ['public AssignRoles setUserName(String value) { this.UserName = value; return this; }']],
  ['kotlin', 'Package=org.example', ['\npackage org.example\n']],
  ['kotlin', 'InitializeCollections=False', ['var Roles:ArrayList<String>? = null']],
  ['kotlin', '', ['var Roles:ArrayList<String> = ArrayList<String>()']],
  ['csharp', '', ['namespace Svc.ServiceModel', 'public virtual string StatusMessage', '    Sql = 2,']],
  ['csharp', 'GlobalNamespace=Acme&AddNamespaces=Acme.Core', ['namespace Acme\n', 'using Acme.Core;\n']],
  ['csharp', 'MakePartial=False&MakeVirtual=False', ['public class HealthCheckRequest', 'public string StatusMessage']],
  ['csharp', 'MakeInternal=True', ['internal partial class HealthCheckRequest', 'internal enum ServerType']],
  ['csharp', 'AddReturnMarker=False', ['class HealthCheckRequest\n        : IGet\n']],
  ['csharp', 'AddNullableAnnotations=True', ['#nullable enable', 'List<MonitorSummary>? MonitorSummaries']],
  [
    'csharp',
    'AddDataContractAttributes=True&AddIndexesToDataMembers=True',
    ['[DataContract]', '[DataMember(Order=2)]'],
  ],
  ['csharp', 'AddGeneratedCodeAttributes=True', ['[GeneratedCode("AddServiceStackReference", "1.0")]']],
  ['typescript', 'MakePropertiesOptional=False', ['public Status!: MonitoringStatus']],
  ['typescript', 'GlobalNamespace=api', ['export namespace api {\n  export interface IReturn<T>']],
  ['typescript.d', '', ['declare namespace dtos {', "type ExecutionMode = 'Basic' | 'Standard' | 'Advanced'"]],
  ['typescript.d', 'MakePropertiesOptional=False&GlobalNamespace=api', ['namespace api', '  StatusMessage: string']],
] as const)('R6 %s obeys %s', async (language, query, expected) => {
  const source = await text(`/types/${language}?${query}`)
  for (const part of expected) expect(source).toContain(part)
  if (query.includes('AddPropertyAccessors')) expect(source).not.toMatch(/ [gs]etUserName/)
})

test.each(['java', 'kotlin', 'python', 'typescript', 'typescript.d'])(
  'R6 %s has the requests of ServiceStack itself unless AddServiceStackTypes is False',
  async (language) => {
    expect(await text(`/types/${language}`)).toMatch(/(class|interface) Authenticate\b/)
    const without = await text(`/types/${language}?AddServiceStackTypes=False`)
    expect(without).not.toMatch(/(class|interface) (Authenticate|AssignRoles)\b/)
    expect(without).toMatch(/(class|interface) HealthCheckRequest\b/)
  },
)

test.each(['swift', 'fsharp', 'typescript.json', 'java.csv', 'typescript.d.ts', 'x%2F..%2Fjava'])(
  'R6 /types/%s is a 404 that names the languages',
  async (name) => {
    const got = await ask(site.port, `/types/${name}`)
    expect([got.status, got.json.ResponseStatus?.ErrorCode]).toEqual([404, 'NotFound'])
    expect(got.json.ResponseStatus?.Message).toContain(languages.join(', '))
  },
)

test('N9 names in camelCase: fields of Java, Kotlin and TypeScript follow, Python has snake_case, C# keeps its own', async () => {
  const { port } = await openSite({ options: { names: 'camelCase' } })
  const source = async (language: string) => (await ask(port, `/types/${language}`)).text
  expect(await source('java')).toContain('public String userName = null;')
  expect(await source('kotlin')).toContain('var userName:String? = null')
  expect(await source('typescript.d')).toContain('userName?: string')
  expect(await source('python')).toContain('user_name: Optional[str] = None')
  expect(await source('csharp')).toContain('string StatusMessage { get; set; }')
})

test('R6 R1 /types alone is a 404', async () => {
  expect((await ask(site.port, '/types')).status).toBe(404)
})
