import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { onTerminal, type Session } from '../../tools/pages/terminal.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

const home = temporaryHome()
const noted = join(home.folder, 'seen')
const script = (name: string, text: string): string => {
  const path = join(home.folder, name)
  writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o700 })
  return path
}
/** A pager that notes its words, LESS and the text, and shows nothing. */
const noting = script('noting', `{ echo "$#|$*|$LESS"; cat; } > ${noted}`)

/** Runs a line on a terminal of 40 lines. `$NODE $SVC` is svc. */
function terminal(
  line: string,
  env: Readonly<Record<string, string>>,
  answer?: (output: string) => string | undefined,
): Promise<Session> {
  rmSync(noted, { force: true })
  const program = { NODE: process.execPath, SVC: home.program }
  return onTerminal(line, {
    ...{ cwd: home.folder, columns: 80, env: { ...home.env, ...program, ...env } },
    ...(answer ? { answer } : {}),
  })
}
const list = '"$NODE" "$SVC" monitors kinds http'

test.each([
  ['a list', list, 'LOOKS AT'],
  ['a help', '"$NODE" "$SVC" health --help', 'USAGE'],
])('O12 %s that is longer than the screen goes to the pager', async (_, line, part) => {
  const { status, output } = await terminal(line, { PAGER: `${noting} -a  b` })
  const [head, ...lines] = readFileSync(noted, 'utf8').split('\n')
  expect([status, head]).toEqual([0, '2|-a b|FRX'])
  expect(lines.length).toBeGreaterThan(40)
  expect(lines.join('\n')).toContain(part)
  expect(output).not.toContain(part)
})

test('O12 what fits on the screen needs no pager, and svc health has none', async () => {
  const short = await terminal('"$NODE" "$SVC" version; "$NODE" "$SVC" monitors kinds smtp | head -1', {
    PAGER: noting,
  })
  expect([existsSync(noted), short.output]).toEqual([false, expect.stringContaining('svc ')])
  const health = await terminal('"$NODE" "$SVC" health -m Advanced -v', { PAGER: noting })
  expect([existsSync(noted), health.output.split('\n').length > 40]).toEqual([false, true])
})

test('O12 LESS that somebody has set stays, and an exit code is that of the command, whatever the pager does', async () => {
  // All checks of a monitor that fails, on a screen that is lower than they are.
  writeFileSync(
    join(home.folder, 'one.yaml'),
    'types: {App: [{kind: tcp, name: worker, host: 127.0.0.1, port: 1}]}\n',
    {
      mode: 0o600,
    },
  )
  const line = 'stty rows 3; "$NODE" "$SVC" monitors test worker --config one.yaml'
  const { status } = await terminal(line, { PAGER: noting, LESS: '-M' })
  expect([status, readFileSync(noted, 'utf8')]).toEqual([3, expect.stringMatching(/^0\|\|-M\n[\s\S]*tcp worker/)])
})

test.each([
  ['is absent', () => join(home.folder, 'nobody')],
  ['fails', () => script('failing', 'exit 1')],
  ['fails after it has read', () => script('late', 'cat > /dev/null; exit 2')],
])('O12 where the pager %s, the list is printed plainly', async (_, pager) => {
  const { status, output } = await terminal(list, { PAGER: pager() })
  expect([status, output.match(/LOOKS AT/g)?.length]).toEqual([0, 1])
  expect(output.split('\n').length).toBeGreaterThan(40)
})

test('O12 ctrl-C in the pager is meant for the pager, and svc ends with it', async () => {
  const waiting = script('waiting', `trap 'echo interrupted; exit 0' INT; echo ready; while :; do sleep 0.1; done`)
  const { output } = await terminal(`${list}; echo "code $?"`, { PAGER: waiting }, (text) =>
    text.includes('ready') ? '\u0003' : undefined,
  )
  expect(output).toMatch(/ready[\s\S]*interrupted[\s\S]*code 0\n$/)
  expect(output).not.toContain('Error:')
})

test('O12 a reader who closes the pager early gets no error', async () => {
  const early = script('early', 'head -1 > /dev/null')
  const { status, output } = await terminal(list, { PAGER: early })
  expect([status, output.trim()]).toEqual([0, ''])
})
