/** Why something is not in svc.yaml. docs/import.md has each of these sentences, which a test compares. */
export const declined = {
  unknown: 'no setting of svc corresponds to it',
  address: 'svc does not compare addresses',
  alert: 'write the receivers in `notify:`; their addresses are secrets, so svc import copies none',
  browser: 'svc runs no browser',
  command: 'svc runs only programs of allowed folders: write the absolute path, and allow its folder',
  condition: 'svc import does not know this form of condition',
  disabled: 'it is disabled there',
  docker: 'svc does not read the state of containers: check what they serve',
  family: 'svc prefers no address family; `family` demands one',
  file: 'svc checks the existence, age and size of a file, not its mode, owner or text',
  group: 'a group has no state of its own: its monitors have a tag',
  http2: 'svc speaks HTTP/1.1 to web servers',
  inverted: 'svc inverts single expectations (`not:`), not a whole monitor',
  kafka: 'svc does not read the lag of Kafka consumers',
  method: 'svc sends GET, HEAD and POST; `http-steps` sends other methods',
  mqtt: 'svc does not subscribe to MQTT topics: check that the broker answers, with kind `tcp`',
  'name server': 'svc asks name servers, not the hosts file',
  push: 'the job runs `svc heartbeat NAME` instead of requesting a URL',
  secret: 'it may be a secret, so svc import does not copy it',
  'second credential': 'svc sends one credential with a request',
  section: 'svc evaluates only the answer section of DNS',
  'sign-in': 'svc signs in to web servers with a password (Basic), a token or OAuth 2.0',
  snmp: 'svc does not speak SNMP',
  ssh: 'svc runs no commands over SSH: run an svc on that machine',
  template: 'svc.yaml takes variables only as secrets, and no templates: write the value',
  transport: 'svc checks TCP, and UDP only for DNS and NTP',
  websocket: 'svc does not speak WebSocket',
} as const
export type Declined = keyof typeof declined

/** Whether the values under a name may be secrets: that of a header, a setting or a parameter. */
export const isSecretName = (name: string): boolean =>
  /auth|cookie|token|api-?key|secret|passw|passphrase|credential|session|signature/i.test(name)

/** Parts of a text that may be secrets, each after what stays. */
const secretParts: readonly RegExp[] = [
  // The user and the password of a URL.
  /(\/\/)[^\s/@]+(?=@)/g,
  /\b((?:Bearer|Basic)\s+)[\w.~+/=-]{6,}/gi,
  // token=…, "password": "…" and --password …, then the commands of mail and chat.
  /((?:passw(?:or)?d|passphrase|pwd|secret|token|api[-_]?key|credentials?|signature)["']?\s*[=:]+\s*["']?)[^\s"'&,;]+/gi,
  /(\b(?:sig|session|auth|key)=+)[^\s"'&,;]+/gi,
  /((?<![\w-])--?[\w-]{0,40}(?:passw(?:or)?d|secret|token|api-?key|credentials?)[\s=]+)\S+/gi,
  /((?:^|\s)-p)\S+/g,
  /\b((?:PASS|LOGIN|AUTHENTICATE)\s+)\S[^\r\n]*/g,
  // Long runs that look random, as in the URL of a webhook.
  /()\b(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32,})\b/gi,
  /()\b(?=\w{0,99}[A-Z])(?=\w{0,99}[a-z])(?=\w{0,99}\d)\w{20,}/g,
]
/** A text with `***` in place of what may be a secret. */
export const hideSecrets = (text: string): string =>
  secretParts.reduce((hidden, part) => hidden.replace(part, '$1***'), text)

/** NAME, if a value is nothing but `${NAME}` or `$NAME`. */
export const variableIn = (value: unknown): string | undefined => {
  const [, braced, bare = braced] = /^\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))$/.exec(String(value)) ?? []
  return bare
}
