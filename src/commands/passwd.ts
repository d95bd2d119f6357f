import { prints, SvcCommand } from '../cli/command/base.ts'
import { boolean, signInFlags } from '../cli/command/flags.ts'
import { askSecret, canAsk, linesFromStdin, newPassword } from '../cli/command/prompt.ts'
import { refuseTokenFromEnvironment } from '../cli/credentials/credentials.ts'
import type { Io } from '../cli/io/io.ts'
import { document, flag, string } from '../cli/render/document.ts'
import { connectionOf, localCall, readSettings } from '../cli/session/session.ts'
import { chooseTarget } from '../cli/settings/target.ts'
import { Fault } from '../core/base/errors.ts'
import { sanitizeLine } from '../core/base/sanitize.ts'

const changedPasswords = document<{ readonly userName: string; readonly changed: true }>()({
  around: { target: string },
  rows: 'users',
  members: { userName: string, changed: flag },
})

export default class Passwd extends SvcCommand {
  static override summary = 'Change your own password, and end your other sessions'
  static override description =
    `Prompts for the current password, and twice for the new one. Scripts use --password-stdin, with
the current password on the first line and the new one on the second. All your earlier sessions and
tokens end; svc stores the new session. An Admin sets the password of another user with svc users
passwd NAME.`
  static override answers = { '': prints(async () => changedPasswords) }
  static override examples = [
    '<%= config.bin %> passwd',
    '<%= config.bin %> passwd --profile svc.example.com --password-stdin < passwords.txt',
  ]
  static override flags = {
    'password-stdin': boolean({ description: 'Read both passwords from standard input, one on each line' }),
    ...signInFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(Passwd)
    refuseTokenFromEnvironment('passwd', this.io.env)
    const settings = await readSettings(this.io.env)
    const target = await chooseTarget(flags, this.io.env, async () => settings)
    if (target.kind === 'local') {
      throw new Fault('Usage', 'nobody is signed in on this machine: svc passwd acts at a server', {
        hints: ['At a server, sign in first: svc login', 'On this machine: svc users passwd NAME'],
      })
    }
    const { openOwnPassword } = await import('../cli/sign-in/own-password.ts')
    const own = await openOwnPassword(target, settings, connectionOf(target, flags, this.io.env), this.io)
    try {
      this.target = own.server
      refuseToPrompt(flags, this.io)
      // Before the prompts, so that nobody types passwords for a sign-in that has expired.
      const user = await own.verify(localCall(signal))
      const passwords = flags['password-stdin']
        ? await fromStdin(this.io, signal)
        : {
            current: await askSecret(`Current password of ${user} at ${own.server}:`, this.io, signal),
            next: await newPassword({ message: 'New password:', stdin: false }, this.io, signal),
          }
      await own.change(passwords, signal)
      this.print(
        flags.json
          ? changedPasswords.text({ target: own.server }, [{ userName: user, changed: true }])
          : sanitizeLine(
              `The password of ${user} at ${own.server} is changed; your other sessions and tokens have ended`,
            ),
      )
    } finally {
      own.close()
    }
    return undefined
  }
}

async function fromStdin(io: Io, signal: AbortSignal): Promise<{ readonly current: string; readonly next: string }> {
  const [current = '', next = ''] = await linesFromStdin('--password-stdin', 2, io, signal)
  return { current, next }
}

function refuseToPrompt(flags: { readonly 'password-stdin': boolean; readonly json: boolean }, io: Io): void {
  if (flags['password-stdin'] || (canAsk(io) && !flags.json)) return
  throw new Fault('Usage', '--password-stdin is missing: there is no terminal to prompt for the passwords', {
    hints: ['Use standard input, the current password first: svc passwd --password-stdin < FILE'],
  })
}
