import { describe, expect, test } from 'vitest'
import { renderError } from '../../src/cli/render/errors.ts'
import { Fault } from '../../src/core/base/errors.ts'
import { ServerType } from '../../src/core/protocol/index.ts'

const plain = { colour: false }

describe('an error', () => {
  test('has the message, the reason and the remedy, with the next step last', () => {
    const fault = new Fault('Usage', 'unknown --type "Sqll"', { hints: ['Did you mean Sql?', 'Types: App Sql'] })
    expect(renderError.text(fault, plain)).toBe('Error: unknown --type "Sqll"\n  Did you mean Sql?\n  Types: App Sql')
  })

  test('is wrapped between words on a narrow terminal, and not at all without one', () => {
    const fault = new Fault('Usage', 'unknown --type "Sqll"', { hints: [`Types: ${ServerType.values.join(' ')}`] })
    expect(renderError.text(fault, { ...plain, width: 40 }).split('\n')).toEqual([
      'Error: unknown --type "Sqll"',
      '  Types: App Sql FtpApi Ftp Batch',
      '    Identity Qc XcodeV XcodeC MsgVast',
      '    AsgVast Mongo Agents',
    ])
    expect(renderError.text(fault, plain).split('\n')).toHaveLength(2)
  })

  test('names the target unless the message does', () => {
    const fault = new Fault('Timeout', 'No answer within 5 s', { hints: ['svc doctor'] })
    const target = 'prod · https://svc.example.com'
    expect(renderError.text(fault, { ...plain, target }).split('\n')[1]).toBe(`  at ${target}`)
    const namedFault = new Fault('Timeout', `No answer from ${target} within 5 s`)
    expect(renderError.text(namedFault, { ...plain, target }).split('\n')).toHaveLength(1)
  })

  test('lists once the fields that a server refused', () => {
    const fault = new Fault('BadRequest', 'Unable to bind', {
      remoteStatus: 400,
      fields: [
        { ErrorCode: 'NotEmpty', FieldName: 'ServerType', Message: 'must not be empty' },
        { ErrorCode: 'X', FieldName: 'Y', Message: 'Unable to bind' },
      ],
    })
    expect(renderError.text(fault, plain)).toBe('Error: Unable to bind\n  ServerType: must not be empty')
    expect(renderError.json(fault).error.responseStatus).toEqual({
      ErrorCode: 'BadRequest',
      Message: 'Unable to bind',
      Errors: [
        { ErrorCode: 'NotEmpty', FieldName: 'ServerType', Message: 'must not be empty' },
        { ErrorCode: 'X', FieldName: 'Y', Message: 'Unable to bind' },
      ],
    })
  })

  test('is one JSON value from an allow-list: no cause, no header, no meta, no stack', () => {
    const fault = new Fault('Unauthorized', 'Invalid Username or Password', {
      errorCode: 'Unauthorized',
      remoteStatus: 401,
      hints: ['svc login'],
      headers: { 'Set-Cookie': 'ss-id=topsecret' },
      meta: { token: 'topsecret' },
      cause: new Error('topsecret'),
    })
    const { error } = renderError.json(fault, 'https://alice:topsecret@svc.example.com')
    expect(Object.keys(error).toSorted()).toEqual(['code', 'exitCode', 'hints', 'message', 'responseStatus', 'target'])
    expect(error).toMatchObject({ code: 'Unauthorized', exitCode: 4, hints: ['svc login'] })
    expect(JSON.stringify(error)).not.toContain('topsecret')
    expect(renderError.text(fault, { ...plain, target: 'https://alice:topsecret@h' })).not.toContain('topsecret')
  })

  test('that is not a Fault is an internal error, exits with 1, and explains how to report it', () => {
    const { error } = renderError.json(new TypeError('x is not a function'))
    expect(error).toMatchObject({ code: 'InternalServerError', exitCode: 1 })
    expect(error.message).toBe('svc failed unexpectedly: TypeError: x is not a function')
    expect(error.hints.join()).toContain('--debug')
    expect(renderError.json('just text').error.message).toContain('just text')
  })

  test('K6 cannot control the terminal, and its message stays on one line', () => {
    const fault = new Fault('ServerError', 'no\u001b[2J\nError: fake', { hints: ['a\u202eb\nc\u0007'] })
    expect(renderError.text(fault, plain)).toBe('Error: no Error: fake\n  ab\n  c')
    expect(renderError.text(fault, { colour: true })).toMatch(/^\u001b\[1m\u001b\[31mError:/)
  })
})
