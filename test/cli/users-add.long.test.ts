import { spawnSync } from 'node:child_process'
import { chownSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { passwordRule } from '../../src/core/base/names.ts'
import { onTerminal } from '../../tools/pages/terminal.ts'
import { homeWithAdmin, password, userNames } from '../support/program/admin-home.ts'
import type { Home } from '../support/program/svc.ts'
import { suiteWith } from '../support/suite/peer.ts'

let home: Home
beforeAll(async () => {
  home = await homeWithAdmin()
})
afterAll(() => home.remove())
const names = (): Promise<readonly string[]> => userNames(home)

suiteWith(
  spawnSync('script', ['--version']).error ? 'script (util-linux) is not installed' : undefined,
  'svc users add on a real terminal',
  () => {
    /** Types each word once its question is asked. Gives all that the terminal showed. */
    const answered = async (args: string, steps: (readonly [question: RegExp, keys: string])[]) => {
      let fresh = ''
      const { output, status } = await onTerminal(`"$NODE" "$SVC" ${args}`, {
        cwd: home.folder,
        env: { ...home.env, NODE: process.execPath, SVC: home.program },
        timeoutMs: 25_000,
        answer: (text) => {
          fresh += text
          const [step] = steps
          if (!step?.[0].test(fresh)) return undefined
          steps.shift()
          fresh = ''
          return step[1]
        },
      })
      return { output, status, rest: steps.length }
    }
    const first = /A password has 8 characters or more[\s\S]*\? Password for zorblatt:/
    const confirm = /\? Confirm password/

    test('P4 P7 shows the rule in the prompt, refuses the first entry and prompts again before the confirmation', async () => {
      const ran = await answered('users add zorblatt', [
        [first, 'short\r'],
        [/must have at least 8 bytes[\s\S]*\? Password for zorblatt/, 'zorblatt99\r'],
        [/too similar[\s\S]*\? Password for zorblatt/, `${password}\r`],
        [confirm, `${password}\r`],
      ])
      expect(ran).toMatchObject({ status: 0, rest: 0 })
      expect(ran.output.replaceAll('\n', ' ')).toContain(passwordRule)
      // At 80 columns and more, the question stays on one line.
      expect(ran.output).toContain('? Password for zorblatt: [input is masked]')
      expect(ran.output.match(/\? Confirm password/g)?.length).toBeGreaterThan(0)
      expect(ran.output.slice(0, ran.output.indexOf('too similar'))).not.toContain('Confirm')
      expect(ran.output).toContain('zorblatt is added')
      expect(ran.output).not.toMatch(new RegExp(`short|zorblatt99|${password}`))
    }, 40_000)

    test('P4 three refused entries are exit 2, and nothing is added', async () => {
      const again = /(?:Try again)[\s\S]*\? Password for dave/
      const ran = await answered('users add dave', [
        [/\? Password for dave/, 'short\r'],
        [again, 'short\r'],
        [again, 'short\r'],
      ])
      expect(ran).toMatchObject({ status: 2, rest: 0 })
      expect(ran.output).toContain('nothing was changed')
      expect(await names()).not.toContain('dave')
    }, 40_000)

    test.each([
      ['ann', /"ann" is already used by ann/, 9],
      ['-- -', /NAME is reserved for the audit log/, 2],
      ['dave --email nowhere', /--email must be an e-mail address/, 2],
    ])('refuses %s before it prompts for a password', async (args, why, code) => {
      const ran = await answered(`users add ${args}`, [])
      expect([ran.status, ran.output]).toEqual([code, expect.stringMatching(why)])
      expect(ran.output).not.toContain('Password for')
    })

    test('K7 ctrl-C at the second prompt: exit 130, nothing added', async () => {
      const ran = await answered('users add dave', [
        [/\? Password for dave/, 'short\r'],
        [/Try again[\s\S]*\? Password for dave/, '\x03'],
      ])
      expect(ran).toMatchObject({ status: 130, rest: 0 })
      expect(await names()).not.toContain('dave')
    })

    test.skipIf(process.getuid?.() !== 0)(
      'P8 names the account of the store before the prompt for a password',
      async () => {
        const folder = join(home.folder, 'store')
        const paths = [folder, ...readdirSync(folder).map((file) => join(folder, file))]
        for (const path of paths) chownSync(path, 65_534, 65_534)
        onTestFinished(() => {
          for (const path of paths) chownSync(path, 0, 0)
        })

        const ran = await answered('users add eve', [])
        expect(ran).toMatchObject({ status: 12, output: expect.stringContaining('belongs to the account nobody') })
        expect(ran.output).not.toContain('Password for')
      },
    )
  },
)
