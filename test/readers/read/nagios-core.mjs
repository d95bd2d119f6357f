/** Nagios Core: a check for each output, and its file of states. It does not parse figures: they are read from that file. */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { env, inPackages, names, shown, withProgram } from './plugin.mjs'

const program = inPackages('usr/sbin/nagios4')
const said = execFileSync(program, ['--version'], { env, encoding: 'utf8' })
const [, version] = /Nagios Core ([\d.]+)/.exec(said)
const group = execFileSync('id', ['-gn'], { encoding: 'utf8' }).trim()

const define = (type, values) =>
  `define ${type} {\n${Object.entries(values)
    .map(([key, value]) => `  ${key} ${value}\n`)
    .join('')}}\n`
const text = (values) =>
  Object.entries(values)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('')

function configure(home, plugin) {
  const at = (name) => join(home, name)
  const config = at('nagios.cfg')
  writeFileSync(
    at('objects.cfg'),
    [
      define('command', { command_name: 'run', command_line: `${plugin} $ARG1$` }),
      define('contact', {
        ...{ contact_name: 'nobody', service_notification_commands: 'run', host_notification_commands: 'run' },
      }),
      define('host', {
        ...{ host_name: 'svc', address: '127.0.0.1', max_check_attempts: 1, active_checks_enabled: 0 },
        contacts: 'nobody',
      }),
      ...names.map((name) =>
        define('service', {
          ...{ host_name: 'svc', service_description: name, check_command: `run!${name}`, contacts: 'nobody' },
          ...{ max_check_attempts: 1, check_interval: 60, retry_interval: 60 },
        }),
      ),
    ].join(''),
  )
  writeFileSync(
    config,
    text({
      ...{ cfg_file: at('objects.cfg'), log_file: at('log/nagios.log'), object_cache_file: at('cache/objects') },
      ...{ status_file: at('data/status.dat'), status_update_interval: 1, lock_file: at('run/lock') },
      ...{ nagios_user: userInfo().username, nagios_group: group, temp_file: at('cache/temp'), temp_path: at('cache') },
      ...{ check_result_path: at('spool'), state_retention_file: at('data/retention'), retain_state_information: 0 },
      ...{ query_socket: at('run/query'), command_file: at('run/command'), check_external_commands: 0 },
      ...{ check_for_updates: 0, bare_update_check: 0, use_syslog: 0, enable_notifications: 0 },
      // All checks at once, in seconds from the start.
      ...{ interval_length: 1, service_inter_check_delay_method: 'n', max_service_check_spread: 1 },
    }),
  )
  return { command: [program, config], file: at('data/status.dat') }
}

/** The checked services of the file of states; undefined until all are there. */
function statesIn(file) {
  const blocks = file.matchAll(/^servicestatus \{\n(.*?)\n\t\}$/gms)
  const services = [...blocks].map(([, block]) =>
    Object.fromEntries(block.split('\n').map((line) => /^\s*(\w+)=(.*)$/.exec(line)?.slice(1) ?? [])),
  )
  const checked = services.filter(({ has_been_checked }) => has_been_checked === '1')
  return checked.length < names.length
    ? undefined
    : Object.fromEntries(checked.map((service) => [service.service_description, service]))
}

const dataOf = (all) =>
  [...all.matchAll(/('[^']*'|\S+?)=(\S*)/g)].map(([, label, datum]) => {
    const [value, , , , max] = datum.split(';')
    return { label: label.replaceAll("'", ''), value: Number.parseFloat(value), max: Number.parseFloat(max) }
  })
/** It escapes line ends, and the backslashes themselves. */
const unescaped = (escaped) => escaped.replace(/\\(.)/g, (_, one) => (one === 'n' ? '\n' : one))

const all = await withProgram(configure, statesIn)
const runs = names.map((name) => {
  const { current_state, plugin_output, long_plugin_output, performance_data } = all[name]
  const of = { state: Number(current_state), line: plugin_output, more: unescaped(long_plugin_output) }
  return [name, shown(name, { ...of, data: dataOf(performance_data) })]
})
process.stdout.write(JSON.stringify({ version, runs: Object.fromEntries(runs) }))
