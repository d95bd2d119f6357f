import { describe, expect, test } from 'vitest'
import { readable } from '../../src/cli/serve/serve-log.ts'

const at = new Date(2026, 0, 2, 12, 3, 11)

describe('the log on a terminal', () => {
  test('shows an answer on one line', () => {
    const line = readable(
      {
        level: 'info',
        msg: 'answered',
        method: 'GET',
        path: '/healthcheck?ExecutionMode=Basic',
        status: 503,
        ms: 40.6,
        correlationId: '7f3c2a9e-41d0-4c1b-9a57-0d6f3f1f2b11',
        address: '127.0.0.1',
      },
      at,
    )
    expect(line).toBe('12:03:11 503 GET /healthcheck?ExecutionMode=Basic 41 ms 7f3c2a9e')
  })

  test('shows the fields of a message of the server below it', () => {
    expect(readable({ level: 'info', msg: 'svc listens', store: '/a/b', types: 'Sql App' }, at)).toBe(
      '12:03:11 svc listens\n         store  /a/b\n         types  Sql App',
    )
  })

  test('S7 prevents text from outside from controlling the terminal', () => {
    const line = readable({ level: 'warn', msg: 'odd', path: '/\u001b[2Jx', status: 400, method: 'GET', ms: 1 }, at)
    expect(line).not.toContain('\u001b')
    expect(line).toContain('WARN')
  })
})
