import { exits } from '../core/errors.ts'

type HelpTopic = { readonly summary: string; readonly text: () => string }

const aligned = (rows: readonly (readonly [string, string])[]): string => {
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, meaning]) => `  ${name.padEnd(width)}  ${meaning}`).join('\n')
}

/** Subjects of `svc help SUBJECT`. */
export const helpTopics: Readonly<Record<string, HelpTopic>> = {
  'exit-codes': {
    summary: 'What every exit code means',
    text: () =>
      `EXIT CODES (frozen: scripts may rely on them)\n${aligned(
        Object.values(exits).map(({ code, meaning }) => [String(code), meaning] as const),
      )}

  Several types or servers: 0 if all are 0, 3 if any is 3, else the one code they share, else 10.
  --output nagios maps to 0 OK, 1 WARNING, 2 CRITICAL (3, 6, 7, 8), 3 UNKNOWN.`,
  },
  environment: {
    summary: 'Variables that svc reads',
    text: () =>
      `ENVIRONMENT (a flag beats its variable; one that is set but empty is an error)\n${aligned([
        ['SVC_SERVER', 'URL of the server to ask; without it the profile, else this machine'],
        ['SVC_PROFILE', 'the profile to use; SVC_SERVER beats it'],
        ['SVC_TOKEN', 'a token or key for the server that this call names; never stored or renewed'],
        ['SVC_CONFIG', 'the svc.yaml to use'],
        ['SVC_HOME', 'one folder for settings, store and state (containers, tests)'],
        ['SVC_STORE', "the embedded store's file, or postgres://user@host/db"],
        ['SVC_STORE_PASSWORD_FILE', "file with the database's password"],
        ['SVC_CA_FILE', 'PEM file of a private certificate authority'],
        ['HTTPS_PROXY, HTTP_PROXY, NO_PROXY', 'the proxy for servers'],
        ['NO_COLOR, FORCE_COLOR, TERM=dumb', 'colour off, on, off'],
        ['ACCESSIBLE', 'still lines instead of moving ones'],
      ])}`,
  },
  formatting: {
    summary: 'Output formats',
    text: () =>
      `FORMATS of svc health --output\n${aligned([
        ['table', 'for people; in a pipe one result a line, tab-separated, never cut'],
        ['json', 'the protocol\'s own document; several types: {"Results": [...]}; errors: {"error": {...}}'],
        ['csv, tsv, ndjson', 'one record per result'],
        ['junit, github', 'for CI: a test report, annotations'],
        ['nagios, prtg, prometheus', 'for monitoring tools; nagios also maps the exit code'],
      ])}`,
  },
  security: {
    summary: 'Where secrets lie, and who may do what',
    text: () =>
      `SECURITY
${aligned([
  ['Passwords', 'asked for, or read from --password-stdin; never an argument, a URL or a log line'],
  ['Tokens', 'in the OS keychain; SVC_TOKEN for CI; a 0600 file only with --insecure-storage'],
  ['Monitors', 'secrets in svc.yaml are {env: NAME}, {file: path} or {keychain: name}; a plain one is refused'],
  ['svc.yaml', 'never looked for in the working directory; refused when others can write it'],
  ['The store', 'whoever can open it is Admin on this machine; others sign in at svc serve'],
  ['svc serve', 'loopback without TLS; elsewhere TLS, an Admin and the host names it answers for'],
  ['Strangers', 'off loopback see states and fault classes, not messages, hosts or figures'],
  ['Certificates', 'always checked; --ca-file adds a private authority'],
])}`,
  },
}
