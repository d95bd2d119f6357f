import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { until } from '../suite/until.ts'
import { type Daemon, startDaemon } from './own-daemon.ts'
import { findProgram, freePort, remove, serverFolder } from './server.ts'

const ircd = findProgram('ngircd')
const relay = findProgram('alertmanager-irc-relay')
export const ircRelayMissing =
  relay === undefined
    ? 'alertmanager-irc-relay is not installed'
    : ircd === undefined
      ? 'an IRC server (ngircd) is not installed'
      : undefined

export type IrcRelay = {
  /** Where it takes webhooks for the channel #ops. */
  readonly url: string
  /** The lines that the members of the channel read. */
  readonly lines: () => readonly string[]
  readonly remove: () => Promise<void>
}

/**
 * A real IRC server (ngircd) with a member in its channel #ops, and alertmanager-irc-relay, which writes there what
 * webhooks say.
 */
export async function startIrcRelay(): Promise<IrcRelay> {
  const folder = serverFolder('irc')
  const [ircPort, httpPort] = [await freePort(), await freePort()]
  const conf = join(folder, 'ngircd.conf')
  const account = process.getuid?.() === 0 ? 'ServerUID = nobody\nServerGID = nogroup\n' : ''
  writeFileSync(
    conf,
    `[Global]\nName = irc.svc.test\nInfo = test\nListen = 127.0.0.1\nPorts = ${ircPort}\nMotdPhrase = hello\n${account}
[Options]\nDNS = no\nIdent = no\nPAM = no\n[Channel]\nName = #ops\n`,
    { mode: 0o644 },
  )
  const server = await startDaemon(ircd ?? '', ['-n', '-f', conf], ircPort)
  const member = connect(ircPort, '127.0.0.1')
  let text = ''
  member.on('error', () => {})
  member.on('data', (part) => {
    text += String(part)
    const [, ping] = /^PING (\S+)\r?$/m.exec(String(part)) ?? []
    if (ping !== undefined) member.write(`PONG ${ping}\r\n`)
  })
  await once(member, 'connect')
  member.write('NICK reader\r\nUSER reader 0 * :reader\r\nJOIN #ops\r\n')
  const config = join(folder, 'relay.yml')
  writeFileSync(
    config,
    `http_host: 127.0.0.1
http_port: ${httpPort}
irc_host: 127.0.0.1
irc_port: ${ircPort}
irc_use_ssl: no
irc_nickname: alerts
irc_realname: alerts
irc_channels: [{name: "#ops"}]
msg_once_per_alert_group: no
msg_template: "{{ .Status }} {{ .Labels.alertname }} {{ .Labels.monitor }}: {{ .Annotations.description }}"
`,
    { mode: 0o644 },
  )
  let running: Daemon | undefined
  try {
    running = await startDaemon(relay ?? '', ['-config', config], httpPort)
  } catch (error) {
    member.destroy()
    await server.stop()
    throw error
  }
  const daemon = running
  // What comes before it is in the channel is written late, at the pace of a person.
  await until(() => daemon.log().includes('join succeeded'), 60_000)
  return {
    url: `http://127.0.0.1:${httpPort}/ops`,
    lines: () =>
      text.split('\r\n').flatMap((line) => {
        const [, message] = /^:\S+ (?:PRIVMSG|NOTICE) #ops :(.*)$/.exec(line) ?? []
        return message === undefined ? [] : [message]
      }),
    remove: async () => {
      member.destroy()
      await daemon.stop()
      await server.stop()
      remove(folder)
    },
  }
}
