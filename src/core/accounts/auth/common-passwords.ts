import { createRequire } from 'node:module'
import { lazy } from '../../base/lazy.ts'

/** How many of the most common passwords are compared (P4). */
const most = 10_000

/**
 * Words that the 10,000 most common passwords lack: words of administration, names of services that svc checks, and
 * `password` and `welcome` in other languages.
 */
const ownWords = `
112233445566 1020304050 159753456 1231234 12341234 a1b2c3d4e5 zaq1zaq1 motdepasse contrasena contraseña senha parole haslo heslo
losenord kennwort wachtwoord jelszo sifre kalimat thepassword yourpassword newpassword oldpassword nopassword
defaultpassword temppassword passphrase passcode passkey letmeinnow opensesame letmeout trustnoone accessgranted
accessdenied login logmein signin welcomeback willkommen bienvenue bienvenido benvenuto changemenow changethis
changeit pleasechange pleasechangeme changepassword reset defaults temporary temporal testuser testpassword
testaccount visitor demouser example sample topsecret mysecret verysecret geheimnis nothinghere blank empty
administrator administrador administrateur adminpass adminpassword sysadmin sysadm superadmin superuser supervisor
management operators operations root rootpass rootpassword toor serviceaccount svc svcadmin servers localhost local
database mysql mariadb postgres postgresql postgrespass mongodb sqlserver sqlite redis elastic elasticsearch kibana
grafana docker kubernetes vagrant ansible nginx wordpress linux ubuntu debian centos fedora macos twitter instagram
netgear linksys dlink router raspberry raspberrypi ubnt helpdesk users myuser corporate computers monitoring
healthcheck nagios zabbix backups internal production staging development developer ilovejesus loveloveme starlight
francisco mickeymouse donaldduck wonderwoman xbox fortnite roblox counterstrike worldofwarcraft darthvader hogwarts
volleyball lisbon lisboa warsaw deutschland harleydavidson mercedesbenz bmw januar wednesday jesuschrist jesusislord
godisgood bible champions millionaire bestfriend helloworld buenosdias everything guitarist flowerpower zaq12wsxcde3
correcthorsebatterystaple donttellanyone whoami whoareyou itsasecret ihavenoidea resetme linkinpark papapapa
mamama redred
`

/** Folds the marks of letters, letter case and the forms of a character, so that `Pässword` is `password`. */
export const fold = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()

const packageName = '@zxcvbn-ts/language-common'

/** Node would keep the package, 3 MB of words and their source, of which a server needs a tenth. */
function dictionaries(): typeof import('@zxcvbn-ts/language-common') {
  const require = createRequire(import.meta.url)
  const before = new Set(Object.keys(require.cache))
  try {
    return require(packageName) as typeof import('@zxcvbn-ts/language-common')
  } finally {
    for (const path of Object.keys(require.cache)) if (!before.has(path)) delete require.cache[path]
  }
}

const common = lazy(async (): Promise<ReadonlySet<string>> => {
  const { dictionary } = dictionaries()
  const own = ownWords.trim().split(/\s+/)
  return new Set([...dictionary['passwords-common'].slice(0, most), ...own].map((word) => fold(String(word))))
})

/** The common passwords, folded. Loaded on first use: they cost 40 ms and 5 MB, and only a new password needs them. */
export const commonPasswords = (): Promise<ReadonlySet<string>> => common.get()
