import { integer } from '@oclif/core/flags'
import { auditFormats, eventFlag, headFlag } from '../cli/command/audit-flags.ts'
import { lists, prints } from '../cli/command/base.ts'
import { boolean, connectionFlags, custom, oneOf, required, requiredArgument, text } from '../cli/command/flags.ts'
import { instantFlag } from '../cli/command/instant.ts'
import { AdminCommand, StoreCommand, storeFlags } from '../cli/session/admin.ts'
import { exits } from '../core/base/errors.ts'

/** Milliseconds for the verification of an audit at a server. */
const verifyMs = 600_000

const loadLists = () => import('../cli/accounts/audit-lists.ts')

export class AuditList extends AdminCommand {
  static override summary = 'Show the audit log, newest entry first'
  static override description =
    'Lists sign-ins and changes of roles, users and keys: who made them, from where, and the reason.'
  static override answers = { '': lists(async () => (await import('../cli/accounts/lists.ts')).audit) }
  static override examples = [
    '<%= config.bin %> audit list',
    '<%= config.bin %> audit list --role Admin --since 90d',
    '<%= config.bin %> audit list --user alice --event signin.ok --event signin.failed',
    '<%= config.bin %> audit list --limit 200 --before 1041',
    '<%= config.bin %> audit list --since 2026-11-01 --output csv > november.csv',
  ]
  static override flags = {
    limit: integer({
      char: 'n',
      description: 'Maximum number of entries (default 50; with csv and jsonl: all)',
      min: 1,
      max: 1_000,
    }),
    before: integer({ description: 'Only entries with a smaller id, for the next page', min: 1 }),
    user: text('user')({ description: 'Only entries that this user made, or that are about the user' }),
    event: eventFlag({ description: 'Only this event; repeatable' }),
    since: instantFlag('since')({ description: 'Only entries from this time on' }),
    until: instantFlag('until')({ description: 'Only entries up to this time' }),
    role: text('role')({ description: 'Only entries that assigned or removed this role' }),
    output: custom<(typeof auditFormats)[number]>({
      char: 'o',
      helpValue: `<${auditFormats.join('|')}>`,
      parse: async (input) => oneOf('output', auditFormats, input, 'Formats'),
    })({
      description: 'Format (default: table on a terminal, tsv in a pipe); csv and jsonl have all matching entries',
    }),
    ...connectionFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(AuditList)
    const { user, since, until, role, event: events, before, output, limit } = flags
    await this.administer(flags, signal, async ({ service, call, store }) => {
      const { auditOf } = await loadLists()
      const filter = { UserName: user, Since: since, Until: until, Role: role, Events: events }
      const read = async (Take: number, Before: number | undefined) =>
        ((await service.getAudit({ ...filter, Before, Take }, call)).Entries ?? []).map(auditOf)
      const { audit } = await import('../cli/accounts/lists.ts')
      if (output === 'csv' || output === 'jsonl') {
        const { auditPages } = await import('../cli/accounts/audit-output.ts')
        const pages = auditPages(read, before, limit)
        const written = { store, format: output, header: this.output.header ?? true }
        const { auditParts } = await import('../cli/accounts/audit-output.ts')
        return await this.printParts(auditParts(pages, written), signal, output === 'csv' ? 'records' : 'json')
      }
      const most = limit ?? 50
      const entries = await read(most, before)
      this.printList(audit.render(entries, { store }, this.output))
      const oldest = entries.at(-1)
      if (flags.json || !this.output.screen.isTTY || !oldest || entries.length < most || oldest.id <= 1) return
      const { repeatTargetFlags } = await import('../cli/render/hints.ts')
      this.say(`\n  ${repeatTargetFlags(`Older entries:   svc audit list --before ${oldest.id}`, this.argv)}`)
    })
  }
}

export class AuditVerify extends AdminCommand {
  static override summary = 'Verify that no entry of the audit was changed, deleted, exchanged or added'
  static override description =
    `Verifies the chain of seals over the audit, after sealing the entries that have no seal yet. Exit code 3: the
audit is broken; the first line names the seal and what was done. Whoever owns the database can make the whole
chain again, or cut its end: both show only against a head that was kept elsewhere (--head). svc serve writes the
head to its log every hour, and svc audit head prints it.`
  static override answers = { '': prints(async () => (await loadLists()).verdicts) }
  static override examples = [
    '<%= config.bin %> audit verify',
    '<%= config.bin %> audit verify --head 1204:3f9c…',
    '<%= config.bin %> audit verify --export audit.jsonl',
    '<%= config.bin %> audit verify --stream /var/log/svc/audit.jsonl',
  ]
  static override flags = {
    head: headFlag({ description: 'A head that was kept elsewhere: the chain must contain it' }),
    export: text('export')({
      description: 'Verify this export, without a store',
      helpValue: 'FILE',
      exclusive: ['stream'],
    }),
    stream: text('stream')({
      description: 'Verify this stream of svc serve, or a part of one, without a store',
      helpValue: 'FILE',
    }),
    ...connectionFlags,
  }

  protected async perform(signal: AbortSignal): Promise<number | undefined> {
    const { flags } = await this.parse(AuditVerify)
    const { head } = flags
    const { isIntact, verdictText } = await loadLists()
    const answer = (verdict: Parameters<typeof isIntact>[0], target: string): number | undefined => {
      this.printList(verdictText(verdict, { target, isCompared: head !== undefined }, this.output))
      return isIntact(verdict) ? undefined : exits.unhealthy.code
    }
    for (const kind of ['export', 'stream'] as const) {
      const file = flags[kind]
      if (file === undefined) continue
      const { verifyAuditFile } = await import('../cli/accounts/audit-file.ts')
      return answer(await verifyAuditFile(file, kind, head, signal), file)
    }
    return await this.administer(flags, signal, async ({ service, call, store }) => {
      const Head = head && `${head.number}:${head.hash}`
      // A long audit takes its time.
      const { verdictOf } = await loadLists()
      return answer(verdictOf(await service.verifyAudit({ Head }, { ...call, timeoutMs: verifyMs })), store)
    })
  }
}

export class AuditHeadCommand extends AdminCommand {
  static override summary = 'Print the head of the audit, to be kept elsewhere'
  static override description =
    `Seals the entries that have no seal yet, and prints the number and the hash of the newest seal. Kept where
nobody who can write to the database can change it, it shows later that the audit was cut or made again:
svc audit verify --head N:HASH.`
  static override answers = { '': prints(async () => (await loadLists()).auditHeads) }
  static override examples = ['<%= config.bin %> audit head', '<%= config.bin %> audit head --json']
  static override flags = connectionFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(AuditHeadCommand)
    await this.administer(flags, signal, async ({ service, call, store }) => {
      const { Head: head } = await service.auditHead({}, call)
      const headLabel = head && `${head.Number}:${head.Hash}`
      if (this.output.json) {
        const { auditHeads } = await loadLists()
        const row = { head: headLabel ?? null, number: head?.Number ?? 0, at: head?.At ?? null }
        this.print(auditHeads.text({ store }, [row]))
      } else if (headLabel === undefined) this.say('The audit has no entry, so it has no head')
      else this.print(headLabel)
    })
  }
}

export class AuditExport extends StoreCommand {
  static override summary = 'Write the audit and its seals to a file that can be verified without a store'
  static override description =
    `Writes every sealed entry and every seal as a line of JSON, after sealing the entries that have no seal yet.
svc audit verify --export FILE verifies it on any machine. The file has mode 600 and appears when it is complete.`
  static override answers = { '': prints(async () => (await loadLists()).auditExports) }
  static override examples = [
    '<%= config.bin %> audit export audit-2026-11.jsonl',
    '<%= config.bin %> audit export /var/backups/audit.jsonl --overwrite',
  ]
  static override args = { file: requiredArgument('FILE', 'File to write') }
  static override flags = {
    overwrite: boolean({ description: 'Replace FILE if it exists' }),
    ...storeFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(AuditExport)
    const file = required(args.file, 'FILE')
    await this.inStore(flags, async ({ exportAudit, store }) => {
      const { writeAuditFile } = await import('../cli/accounts/audit-file.ts')
      const overwrite = flags.overwrite === true
      const head = await writeAuditFile(file, overwrite, (write) => exportAudit(write, signal))
      const headLabel = head ? `${head.number}:${head.hash}` : null
      const { json, screen } = this.output
      if (json) {
        const { auditExports } = await loadLists()
        return this.print(auditExports.text({ store }, [{ file, head: headLabel }]))
      }
      if (!screen.isTTY) return this.print(headLabel ?? '')
      const { headline, pairs } = await import('../cli/render/table.ts')
      const facts = [
        ['Head', headLabel ?? 'none: the audit has no entry'],
        ['Store', store],
      ] as const
      this.print(`${headline('ok', `${file} has the audit and its seals`, screen)}\n${pairs(facts, screen)}`)
    })
  }
}
