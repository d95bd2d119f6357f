import { otherWord, type Setting, type SettingsSpec, type ThresholdUnit, writtenAs } from '../base/settings/index.ts'
import type { AnyKind } from '../checks/engine/index.ts'
import { configurableKinds, hostKind, loadKind, plans, writeDefault, writeRange } from '../checks/plan/index.ts'
import { loadProfile, type Profile, placeholder, profileNames } from '../checks/profiles/index.ts'
import { ExecutionMode, ServerType } from '../protocol/index.ts'
import { serveSettings } from '../protocol/service/serve-settings.ts'
import { drillSettings } from '../watch/drill/index.ts'
import { notifySettings, receiverKinds } from '../watch/notify/index.ts'
import { silenceSettings } from '../watch/silences/index.ts'
import { authSettings } from './auth.ts'
import { commonFor, commonSettings, latencyOf, shorthands, typeSettings } from './common.ts'
import { execSettings } from './exec.ts'
import { includeSettings } from './include.ts'
import { changeKey, nameOfParameter, nameOfProfile, parameterFields, profileSettings, useSettings } from './profiles.ts'

type Json = Readonly<Record<string, unknown>>

/**
 * The JSON Schema (2020-12) of svc.yaml, derived from the tables that validate it, so that editors complete and check
 * the file as svc does.
 */
export async function configSchema(): Promise<object> {
  const kinds = [...(await configurableKinds())].sort((a, b) => (a.name < b.name ? -1 : 1))
  const host = await loadKind(hostKind)
  const monitors: Json = { type: 'array', items: { anyOf: [{ $ref: '#/$defs/monitor' }, { $ref: '#/$defs/use' }] } }
  const types = ServerType.values.map((type) => [type, { description: plans[type].title, $ref: '#/$defs/type' }])
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'svc.yaml',
    description: 'What svc checks, by server type, and how svc serve behaves',
    type: ['object', 'null'],
    additionalProperties: false,
    properties: {
      types: {
        description: 'The monitors of each server type',
        type: ['object', 'null'],
        additionalProperties: false,
        properties: Object.fromEntries(types),
      },
      host: { $ref: '#/$defs/host' },
      ...(settingsSchema(includeSettings)['properties'] as Json),
      profiles: {
        description: 'Your own profiles; one with the name of a built-in profile replaces it',
        type: ['object', 'null'],
        propertyNames: { pattern: nameOfProfile.source },
        additionalProperties: { $ref: '#/$defs/profile' },
      },
      serve: {
        ...settingsSchema(serveSettings),
        description: 'Settings of svc serve; flags take precedence',
        type: ['object', 'null'],
      },
      auth: {
        ...settingsSchema(authSettings),
        description: 'Further ways to sign in to svc serve',
        type: ['object', 'null'],
      },
      notify: {
        description: 'Receivers of the notifications of svc serve',
        type: ['array', 'null'],
        items: { $ref: '#/$defs/receiver' },
      },
      silences: {
        description: 'When notifications wait',
        type: ['array', 'null'],
        items: settingsSchema(silenceSettings),
      },
      drill: {
        ...settingsSchema(drillSettings),
        description: 'When svc serve drills by itself, and through which receivers',
        type: ['object', 'null'],
      },
      exec: {
        ...settingsSchema(execSettings),
        description: "Programs that the kind exec may run; only in the system's svc.yaml, a file owned by root",
      },
    },
    $defs: {
      type: {
        anyOf: [
          monitors,
          {
            type: 'object',
            additionalProperties: false,
            properties: {
              host: { $ref: '#/$defs/host' },
              ...(settingsSchema(typeSettings)['properties'] as Json),
              monitors: { anyOf: [monitors, { type: 'null' }] },
            },
          },
          { type: 'null' },
        ],
      },
      host: {
        description: `${host.title}; false disables the host block`,
        anyOf: [settingsSchema(host.settings), { enum: [false, null] }],
      },
      use: await useSchema(),
      dependsOn: dependsOnShape,
      profile: profileSchema(kinds.map(({ name }) => name)),
      ...formsSchema('monitor', {
        kinds: kinds.map((kind) => [kind, kindSchema(kind)]),
        common: commonSettings,
      }),
      ...formsSchema('receiver', {
        kinds: receiverKinds.map((kind) => [kind, longSchema(kind, kind.doc, commonProperties(notifySettings))]),
        common: notifySettings,
        prefix: 'receiver.',
      }),
    },
  }
}

type Kind = { readonly name: string; readonly settings: SettingsSpec }
type Forms = {
  /** Each kind with the schema of its long form, but for `kind` and `name` being required. */
  readonly kinds: readonly (readonly [Kind, Json])[]
  readonly common: SettingsSpec
  /** The prefix of the names of the definitions of kinds. */
  readonly prefix?: string
}

/** The definitions of an entry in both forms. A section of the short form is the long form without what every entry has. */
function formsSchema(thing: string, { kinds, common, prefix = '' }: Forms): Json {
  const refOf = ({ name }: Kind): Json => ({ $ref: `#/$defs/${prefix}${name}` })
  const required = ['name'].filter((name) => common[name]?.required)
  const properties = commonProperties(common)
  // What a kind has as a setting of its own, like `flapping` of heartbeat, is left to svc.
  const others = Object.keys(common).filter((name) => kinds.every(([{ settings }]) => !Object.hasOwn(settings, name)))
  const sections = kinds.map(([kind, { description }]) => {
    const section = { type: 'object', description, allOf: [refOf(kind), { $ref: `#/$defs/${thing}.own` }] }
    const flag = properties[kind.name]
    return [kind.name, flag === undefined ? section : { anyOf: [flag, section] }] as const
  })
  return {
    [thing]: {
      type: 'object',
      anyOf: [
        {
          required: ['kind', ...required],
          properties: { kind: { description: common['kind']?.doc, enum: kinds.map(([{ name }]) => name) } },
          // Each has its kind as a constant, which tells editors which one applies.
          anyOf: kinds.map(([kind]) => refOf(kind)),
        },
        { $ref: `#/$defs/${thing}.short` },
      ],
    },
    [`${thing}.short`]: {
      type: 'object',
      additionalProperties: false,
      ...(required.length > 0 ? { required } : {}),
      properties: { ...properties, ...Object.fromEntries(sections) },
      $ref: `#/$defs/${thing}.section`,
    },
    [`${thing}.section`]: {
      description: 'The short form: the settings of the kind under its name',
      type: 'object',
      oneOf: kinds.map(([{ name }]) => ({
        required: [name],
        // A setting of every entry that has the name of a kind is no section.
        ...(Object.hasOwn(properties, name) ? { properties: { [name]: { type: 'object' } } } : {}),
      })),
    },
    [`${thing}.own`]: {
      description: 'No setting of every entry',
      type: 'object',
      propertyNames: { not: { enum: others } },
    },
    ...Object.fromEntries(kinds.map(([{ name }, schema]) => [`${prefix}${name}`, schema])),
  }
}

/** The properties of the settings of every entry, except the kind. */
function commonProperties(common: SettingsSpec): Json {
  const { kind: _, ...properties } = settingsSchema(common)['properties'] as Json
  return Object.hasOwn(properties, 'dependsOn') ? { ...properties, dependsOn: dependsOnSchema } : properties
}

/**
 * An entry that uses a profile. Unknown parameters are allowed and none is required: the file may define its own
 * profiles and replace built-in ones.
 */
async function useSchema(): Promise<Json> {
  const shipped = await Promise.all(
    profileNames.map(async (name) => {
      const { title, parameters } = await loadProfile(name)
      return { name, title, parameters }
    }),
  )
  const { properties } = settingsSchema(useSettings) as { properties: Json }
  return {
    description: `Monitors made of a profile: ${shipped.map(({ name, title }) => `${name} (${title})`).join(', ')}`,
    type: 'object',
    required: ['profile'],
    not: { required: ['kind'] },
    properties: {
      ...properties,
      profile: { description: useSettings.profile.doc, type: 'string' },
      [changeKey]: {
        description: "Settings to change in the profile's monitors, by the name of the monitor",
        type: 'object',
        additionalProperties: { type: 'object', properties: { kind: false, name: false } },
      },
    },
    anyOf: [
      ...shipped.map(({ name, title, parameters }) => ({
        title: name,
        description: title,
        properties: { profile: { const: name }, ...parameterProperties(parameters) },
      })),
      { title: 'a profile of this file', properties: { profile: { not: { enum: profileNames } } } },
    ],
  }
}

const parameterProperties = (parameters: Profile['parameters']): Json =>
  Object.fromEntries(
    Object.entries(parameters).map(([name, { doc, default: usual }]) => [
      name,
      { description: usual === undefined ? doc : `${doc} (default: ${JSON.stringify(usual)})` },
    ]),
  )

/**
 * A profile definition. Settings with placeholders are checked when the values are known, so the schema allows anything
 * there.
 */
function profileSchema(kinds: readonly string[]): Json {
  const names: Json = { type: 'array', items: someText }
  const parameter = settingsSchema(parameterFields) as { properties: Json }
  return {
    description: 'Monitors that a server type usually needs, with parameters',
    type: 'object',
    additionalProperties: false,
    required: ['monitors'],
    properties: {
      title: { description: 'What the profile monitors', type: 'string' },
      doc: { description: 'Notes on the profile', type: 'string' },
      ...(settingsSchema(profileSettings)['properties'] as Json),
      parameters: {
        description: 'Parameters that an entry sets, by name',
        type: ['object', 'null'],
        propertyNames: { pattern: nameOfParameter.source },
        additionalProperties: {
          ...parameter,
          properties: { ...parameter.properties, default: { description: 'Default value' } },
        },
      },
      monitors: {
        description: `Monitors of the profile, with ${placeholder('name')} for the value of a parameter; an item of a list may have its own \`when\``,
        type: 'array',
        minItems: 1,
        items: {
          type: 'object',
          required: ['name'],
          anyOf: [{ required: ['kind'] }, { $ref: '#/$defs/monitor.section' }],
          properties: {
            kind: { description: commonSettings.kind.doc, enum: kinds },
            name: { description: 'Name, unique in the profile', ...someText },
            when: { description: 'Parameters that must be set, or the monitor is omitted', anyOf: [someText, names] },
            dependsOn: { description: 'Other monitors of the profile, by name', anyOf: [someText, names] },
          },
        },
      },
    },
  }
}

function longSchema({ name, settings }: Kind, description: string, common: Json): Json {
  const { properties, ...schema } = settingsSchema(settings)
  const kind = { description: 'Kind', const: name }
  return { ...schema, title: name, description, properties: { kind, ...(properties as Json), ...common } }
}

function kindSchema(kind: AnyKind): Json {
  const { properties, ...schema } = longSchema(kind, kind.title, commonProperties(commonFor(kind.settings)))
  const latency = latencyOf(kind.settings)
  const more = latency
    ? shorthands.map((name) => [name, { description: `latency: ${name}`, ...half(latency.unit) }])
    : []
  return {
    ...schema,
    properties: { ...(properties as Json), ...Object.fromEntries(more) },
    // The shorthands exclude `latency`, which they replace.
    ...(latency ? { allOf: shorthands.map((name) => ({ not: { required: ['latency', name] } })) } : {}),
  }
}

/** Settings with another word are required under either; editors leave that to svc. */
const requiredOf = (spec: SettingsSpec): readonly string[] =>
  Object.entries(spec).flatMap(([name, setting]) =>
    setting.required && otherWord(name, spec) === undefined ? [name] : [],
  )

/** The schema of a table of settings. */
export function settingsSchema(spec: SettingsSpec): Json {
  const required = requiredOf(spec)
  return {
    type: 'object',
    additionalProperties: false,
    ...(required.length > 0 ? { required } : {}),
    properties: Object.fromEntries(
      Object.entries(spec).flatMap(([name, setting]) => {
        const other = otherWord(name, spec)
        const schema = name === 'tls' ? tlsShape(setting) : described(setting)
        return [
          [name, schema],
          ...(other === undefined ? [] : [[other, { ...schema, description: `Another word for ${name}` }]]),
        ]
      }),
    ),
  }
}

/** `off`, `false` and `{mode: off}` in every kind, beside its own values. */
function tlsShape(setting: Setting): Json {
  const { description, default: usual, ...shape } = described(setting)
  const modes: Json = setting.type === 'choice' ? { enum: setting.values } : { enum: ['off', 'on'] }
  const fields = setting.type === 'group' ? setting.fields['mode'] : undefined
  const mode = fields?.type === 'choice' ? { enum: fields.values } : modes
  const only: Json = { type: 'object', additionalProperties: false, required: ['mode'], properties: { mode } }
  const any = [shape, mode, { const: false }, ...(setting.type === 'group' ? [] : [only])]
  return { description, ...(usual === undefined ? {} : { default: usual }), anyOf: any }
}

/** Defaults of durations, sizes and thresholds are written as text with their units, as in the file. */
function described(setting: Setting): Json {
  const plain =
    setting.type !== 'duration' && setting.type !== 'bytes' && setting.type !== 'threshold' && setting.type !== 'every'
  const usual = 'default' in setting && plain ? setting.default : undefined
  // The schema states the range of a number itself.
  const range = setting.type === 'bytes' || setting.type === 'duration' ? writeRange(setting) : undefined
  const written = plain ? undefined : writeDefault(setting)
  const notes = [...(range === undefined ? [] : [range]), ...(written === undefined ? [] : [`default: ${written}`])]
  return {
    description: notes.length === 0 ? setting.doc : `${setting.doc} (${notes.join(', ')})`,
    ...(usual === undefined ? {} : { default: usual }),
    ...shapeOf(setting),
  }
}

const someText: Json = { type: 'string', pattern: '[^ \\t]' }
/** In lists and maps, a whole number counts as text. */
const wholeNumber: Json = { type: 'integer', minimum: 0 }

const orNegation = (text: Json): Json => ({
  anyOf: [text, { type: 'object', additionalProperties: false, required: ['not'], properties: { not: text } }],
})

function shapeOf(setting: Setting): Json {
  switch (setting.type) {
    case 'text':
      if (setting.negatable) return orNegation(someText)
      return setting.pattern ? { type: 'string', pattern: setting.pattern.source } : someText
    case 'url': {
      const url = { type: 'string', pattern: `^(${setting.protocols.join('|')}):` }
      return setting.orSecret ? { anyOf: [url, secretShape] } : url
    }
    case 'number':
    case 'integer':
      return {
        type: setting.type,
        ...(setting.min === undefined ? {} : { minimum: setting.min }),
        ...(setting.max === undefined ? {} : { maximum: setting.max }),
      }
    case 'countOrOff':
      return { anyOf: [{ type: 'integer', minimum: setting.min, maximum: setting.max }, { enum: ['off', false] }] }
    case 'flag':
      return { type: 'boolean' }
    case 'duration':
    case 'bytes':
      return { type: 'string', pattern: writtenAs[setting.type] }
    case 'secret':
      return secretShape
    case 'choice':
      return { enum: setting.values }
    case 'texts': {
      const one = setting.pattern ? [{ type: 'string', pattern: setting.pattern.source }] : [someText, wholeNumber]
      const items = { anyOf: setting.allowsEmpty ? [{ type: 'string' }, wholeNumber] : one }
      return { anyOf: [...one, { type: 'array', items }] }
    }
    case 'map': {
      if (setting.secrets) return { type: 'object', additionalProperties: secretShape }
      const text = { anyOf: [{ type: ['string', 'boolean'] }, wholeNumber] }
      return { type: 'object', additionalProperties: setting.negatable ? orNegation(text) : text }
    }
    case 'template':
      return {}
    case 'threshold':
      return thresholdShape(setting.unit)
    case 'every':
      return everyShape
    case 'group':
      return settingsSchema(setting.fields)
    case 'groups':
      return { type: 'array', items: settingsSchema(setting.fields) }
  }
}

const members: Json = { anyOf: [someText, { type: 'array', minItems: 1, items: someText }] }
const group: Json = {
  anyOf: [
    {
      type: 'object',
      additionalProperties: false,
      required: ['any'],
      properties: { any: { description: 'Monitors of which one must be within reach', ...members } },
    },
    {
      type: 'object',
      additionalProperties: false,
      required: ['atLeast', 'of'],
      properties: {
        atLeast: { description: 'How many of them must be within reach', type: 'integer', minimum: 1 },
        of: { description: 'The monitors of the group', ...members },
      },
    },
  ],
}
const dependsOnSchema: Json = { description: commonSettings.dependsOn.doc, $ref: '#/$defs/dependsOn' }
const dependsOnShape: Json = {
  anyOf: [someText, wholeNumber, group, { type: 'array', items: { anyOf: [someText, wholeNumber, group] } }],
}

const secretShape: Json = {
  anyOf: [
    {
      type: 'object',
      additionalProperties: false,
      required: ['env'],
      properties: {
        env: {
          description: 'Environment variable that contains the secret',
          type: 'string',
          pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
        },
      },
    },
    {
      type: 'object',
      additionalProperties: false,
      required: ['file'],
      properties: {
        file: { description: 'File that contains the secret', type: 'string', pattern: '^[^~\\s][^\\r\\n]*$' },
      },
    },
    {
      type: 'object',
      additionalProperties: false,
      required: ['keychain'],
      properties: {
        keychain: {
          description: 'Name under which `svc secrets set` stored the secret in the OS keychain',
          type: 'string',
          pattern: '^[A-Za-z0-9_.@-]{1,100}$',
        },
      },
    },
  ],
}

const figureShapes: Record<ThresholdUnit, readonly Json[]> = {
  duration: [{ type: 'string', pattern: writtenAs.duration }],
  bytes: [{ type: 'string', pattern: writtenAs.bytes }],
  percent: [
    { type: 'string', pattern: writtenAs.percent },
    { type: 'number', minimum: 0 },
  ],
  days: [
    { type: 'number', minimum: 0 },
    { type: 'string', pattern: writtenAs.duration },
  ],
  count: [{ type: 'number', minimum: 0 }],
  ratio: [{ type: 'number', minimum: 0 }],
}

/** A number, or `off` for none. */
const half = (unit: ThresholdUnit): Json => ({ anyOf: [...figureShapes[unit], { const: 'off' }] })

const interval: Json = { anyOf: [{ type: 'string', pattern: writtenAs.duration }, { enum: ['off', false] }] }
const everyShape: Json = {
  anyOf: [
    interval,
    {
      type: 'object',
      additionalProperties: false,
      properties: Object.fromEntries(ExecutionMode.values.map((mode) => [mode, interval])),
    },
  ],
}

const thresholdShape = (unit: ThresholdUnit): Json => ({
  anyOf: [
    ...figureShapes[unit],
    { const: 'off' },
    { type: 'object', additionalProperties: false, properties: { warn: half(unit), limit: half(unit) } },
  ],
})
