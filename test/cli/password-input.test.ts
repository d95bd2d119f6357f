import { describe, expect, test } from 'vitest'
import { newPassword } from '../../src/cli/command/prompt.ts'
import { Fault } from '../../src/core/base/errors.ts'
import { capturedIo } from '../support/program/captured-io.ts'

/** The password that `--password-stdin` reads from these bytes. */
async function read(stdin: Buffer | string): Promise<string> {
  const { io } = capturedIo({ stdin })
  try {
    return `read ${JSON.stringify(await newPassword({ message: '', stdin: true }, io, new AbortController().signal))}`
  } catch (error) {
    return error instanceof Fault ? `${error.fault} ${error.message}` : String(error)
  }
}

describe('P4 P7 a password from standard input', () => {
  test.each([
    ['one line end at its end is trimmed', 'correct horse\n', 'correct horse'],
    ['as Windows writes it too', 'correct horse\r\n', 'correct horse'],
    ['without a line end', 'correct horse', 'correct horse'],
    ['blanks are part of it', '  pass word \t\n', '  pass word \t'],
    ['any Unicode, exactly', '\ufeffÅé🐴\n', '\ufeffÅé🐴'],
    ['1,024 bytes and more are not cut here', 'x'.repeat(5_000), 'x'.repeat(5_000)],
  ])('%s', async (_, input, secret) => {
    expect(await read(input)).toBe(`read ${JSON.stringify(secret)}`)
  })

  test.each([
    ['nothing', '', 'standard input is empty'],
    ['a line end alone', '\n', 'standard input is empty'],
    ['two lines', 'one\ntwo\n', 'more than one line'],
    ['bytes that are not UTF-8', Buffer.of(0x61, 0xff, 0xfe, 0x0a), 'not UTF-8'],
    ['more than 64 KiB', 'x'.repeat(70_000), 'more than 65536 bytes'],
  ])('%s is refused, with the flag and not the value in the message', async (_, input, why) => {
    const text = await read(input)
    expect(text).toMatch(/^Usage --password-stdin: /)
    expect(text).toContain(why)
    expect(text).not.toMatch(/one\b.*two|xxx|�/)
  })
})
