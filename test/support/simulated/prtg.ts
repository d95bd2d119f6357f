import { Ajv2020 } from 'ajv/dist/2020.js'

/**
 * The JSON, by PRTG's manual, of an EXE/Script Advanced sensor ("Custom Sensors", Paessler): its members, their
 * values, and the maximum numbers of characters and channels. PRTG itself is no free software, so no test runs it.
 */
const flag = { enum: [0, 1] }
const limit = { type: 'number' }
const message = { type: 'string', not: { pattern: '#' } }
const channel = {
  type: 'object',
  required: ['channel', 'value'],
  additionalProperties: false,
  properties: {
    channel: { type: 'string', minLength: 1, not: { pattern: '#' } },
    value: { type: 'number' },
    float: flag,
    unit: {
      enum: [
        'BytesBandwidth',
        'BytesDisk',
        'BytesFile',
        'BytesMemory',
        'Count',
        'CPU',
        'Custom',
        'Percent',
        'SpeedDisk',
        'SpeedNet',
        'Temperature',
        'TimeHours',
        'TimeResponse',
        'TimeSeconds',
      ],
    },
    customunit: { type: 'string', minLength: 1, not: { pattern: '#' } },
    limitmode: flag,
    limitmaxerror: limit,
    limitmaxwarning: limit,
    limitminwarning: limit,
    limitminerror: limit,
    limiterrormsg: message,
    limitwarningmsg: message,
  },
  // Without `float`, PRTG reads a whole number.
  if: { properties: { float: { const: 1 } }, required: ['float'] },
  else: { properties: { value: { type: 'integer' } } },
  dependentRequired: {
    customunit: ['unit'],
    limitmaxerror: ['limitmode'],
    limitmaxwarning: ['limitmode'],
    limitminwarning: ['limitmode'],
    limitminerror: ['limitmode'],
  },
}
const text = { type: 'string', maxLength: 2_000, not: { pattern: '#' } }

const schema = {
  type: 'object',
  required: ['prtg'],
  additionalProperties: false,
  properties: {
    prtg: {
      oneOf: [
        {
          type: 'object',
          required: ['result'],
          additionalProperties: false,
          properties: { result: { type: 'array', minItems: 1, maxItems: 50, items: channel }, text },
        },
        {
          type: 'object',
          required: ['error', 'text'],
          additionalProperties: false,
          properties: { error: { const: 1 }, text: { ...text, minLength: 1 } },
        },
      ],
    },
  },
}

export const prtgSchema = new Ajv2020({ strict: false, validateFormats: false }).compile(schema)
