/**
 * The passwords that attackers try first: words, names and rows of keys. Compared without regard to letter case and
 * surrounding signs. Years and digits before or after a word are stripped before the lookup.
 */
const words = `
123456 1234567 12345678 123456789 1234567890 12345678910 0123456789 987654321 9876543210 87654321 11223344 112233445566
123123123 1231234 12341234 123454321 1357924680 1020304050 147258369 159753456 741852963 789456123 963852741 19283746
abcdefg abcdefgh abcdefghi abcd1234 abc12345 abc123456 a1b2c3d4 a1b2c3d4e5 a1234567 a12345678 a123456789 aa123456
aa12345678 q1w2e3r4 q1w2e3r4t5 1q2w3e4r 1q2w3e4r5t 1qaz2wsx 1qaz2wsx3edc 1qazxsw2 zaq12wsx zaq1zaq1 qazwsxedc qazwsx123
qwerty qwertyui qwertyuiop qwerty123 qwerty1234 qwertz qwertzui qwertzuiop azerty azertyuiop asdfgh asdfghjk asdfghjkl
asdf1234 asdfasdf zxcvbn zxcvbnm zxcvbnm123 qweasd qweasdzxc 1234qwer qwer1234 qwer123456 poiuytrewq lkjhgfdsa mnbvcxz
password passwort passwords passw0rd motdepasse contrasena contraseña senha parola parole haslo heslo losenord kennwort
wachtwoord salasana jelszo sifre kalimat mypassword thepassword yourpassword newpassword oldpassword nopassword
passwordpassword password1password defaultpassword temppassword passphrase passcode passkey letmein letmeinnow openup
opensesame letmeout trustnoone trustno1 access accessgranted accessdenied login loginlogin logmein signin welcome
welcomeback willkommen bienvenue bienvenido benvenuto changeme changemenow changethis changeit pleasechange pleasechangeme
changepassword resetme reset default defaults temp temporary temporal testtest test testing tester testuser testpass
testpassword testaccount guest guestguest visitor demo demodemo demouser example sample secret secretsecret topsecret
mysecret secrets verysecret geheim geheimnis private hidden nothing nothinghere none nopass blank empty unknown
admin adminadmin administrator administrador administrateur adminpass adminpassword administrator1 sysadmin sysadm
superadmin superuser super supervisor superman manager management operator operators operations root rootroot rootpass
rootpassword toor toortoor system systems service services serviceaccount svc svcadmin server servers localhost local
database oracle mysql mariadb postgres postgresql postgrespass mongodb sqlserver sqlite redis elastic elasticsearch
kibana grafana jenkins docker kubernetes vagrant ansible tomcat apache nginx wordpress windows microsoft linux ubuntu
debian redhat centos fedora macos apple google amazon facebook twitter instagram youtube samsung nokia cisco juniper
netgear linksys dlink router routerrouter raspberry raspberrypi ubnt support helpdesk user username useruser users
myuser office company corporate business computer computers internet network security secure security1 monitor
monitoring health healthcheck nagios zabbix backup backups public internal production staging development developer
iloveyou iloveu iloveme ilovegod ilovejesus loveyou loveme lovely lover lovers loveloveme mylove truelove love
sunshine moonlight starlight rainbow flower flowers butterfly princess princesa prince queen kingking king angel angels
daniel michael michelle jennifer jessica jordan jonathan matthew andrew anthony ashley amanda alexander alexandra
alexandre benjamin brandon brittany charlie charlotte christian christina christopher daniela danielle david diana
dominic elizabeth emmanuel estrella fernando francisco frederic gabriel gabriela george giovanni hannah isabella
jasmine joseph joshua juliana justin katherine kimberly lauren leonardo lorenzo margaret maria marina martin maxwell
melissa mercedes mohammed muhammad monica natalia natalie natasha nicholas nicole oliver olivia patricia patrick
rebecca ricardo richard robert roberto roland samantha samuel sandra sebastian sophie stefan stephanie steven sylvia
tamara thomas tiffany valentina vanessa veronica victor victoria vincent vladimir william zachary
monkey dragon tiger tigers lion lions eagle eagles falcon falcons panther panthers bulldog bulldogs puppy kitten kitty
hellokitty garfield snoopy scooby mickey mickeymouse minnie donald donaldduck simpsons batman spiderman wonderwoman
pokemon pikachu nintendo playstation xbox minecraft fortnite roblox counterstrike starcraft warcraft worldofwarcraft
starwars startrek skywalker darthvader gandalf hogwarts harrypotter matrix matrixmatrix terminator godzilla
football fussball futbol soccer baseball basketball hockey tennis golfer cricket rugby volleyball swimming running
arsenal chelsea liverpool manchester barcelona realmadrid juventus bayern borussia schalke benfica ajax celtic rangers
yankees redsox cowboys steelers lakers chicago newyork london paris berlin madrid lisbon lisboa warsaw moscow istanbul
england deutschland france espana italia portugal brasil brazil mexico canada america australia india pakistan turkey
ferrari porsche mustang corvette camaro harley harleydavidson yamaha suzuki kawasaki honda toyota mercedesbenz bmw audi
summer winter spring autumn sommer januar january february march april june july august september october november
december monday tuesday wednesday thursday friday saturday sunday weekend holiday christmas easter birthday
jesus jesuschrist jesusislord godisgood blessed blessing faith hope heaven church christ bible trinity
freedom liberty peace justice victory winner champion champions success lucky luckyone fortune money moneymoney
million millionaire diamond silver golden goldfish crystal purple orange yellow green blueblue black white redred
chocolate cookie cookies cheese coffee banana cherry strawberry peaches pepper peanut pumpkin vanilla sugar honey
mother father mommy daddy mamapapa mamama papapapa brother sister family friend friends bestfriend forever together
hello hellohello helloworld hallo hallohallo bonjour buenosdias goodbye whatever whatever1 nevermind anything something
everything computer1 internet1 killer killers hunter ranger warrior soldier master masters mastermaster shadow phantom
ninja samurai wizard magic magician pirate cowboy rocket rockstar guitar guitarist music musica metallica nirvana
slipknot linkinpark beatles eminem elvis hiphop rocknroll dancer dancing singer fuckyou fuckoff asshole bullshit
biteme sexy sexsex hotstuff playboy thunder lightning storm hurricane tornado phoenix midnight sunset sunrise ocean
mountain forest garden flowerpower nature natural universe galaxy planet jupiter saturn mercury venus neptune
zaq12wsxcde3 correcthorsebatterystaple donttellanyone idontknow ihateyou whoami whoareyou itsasecret ihavenoidea
`

export const commonPasswords: ReadonlySet<string> = new Set(words.trim().split(/\s+/))

/** In bytes of UTF-8 (P4). */
export const shortest = 8
export const longest = 1_024

/** Shorter names occur in good passwords by chance. */
const tellingName = 4

/**
 * Why a new password is refused, or undefined when it is acceptable. `names` are the user's own: user name, display
 * name, e-mail address. There are no rules about kinds of characters: length and originality count.
 */
export function refusal(password: string, names: readonly string[], least = shortest): string | undefined {
  if (!password.isWellFormed()) return 'is not valid Unicode'
  const bytes = Buffer.byteLength(password)
  if (bytes < Math.max(shortest, least)) return `must have at least ${Math.max(shortest, least)} bytes`
  if (bytes > longest) return `may have at most ${longest} bytes`
  if (isCommon(password)) return 'is a common password, which attackers try first'
  if (names.some((name) => isSimilar(password, name))) return 'is too similar to the name or e-mail address of the user'
  return undefined
}

function isCommon(password: string): boolean {
  const plain = bare(password)
  const word = plain.replace(/^\d+|(?<!\d)\d+$/g, '')
  // One or a few characters repeated: `aaaaaaaa`, `abcabcabc`.
  if (/^(.{1,4}?)\1+$/su.test(password)) return true
  return commonPasswords.has(plain) || commonPasswords.has(unleet(plain)) || (plain.length < 14 && commonWord(word))
}

const commonWord = (word: string): boolean => commonPasswords.has(word) || commonPasswords.has(unleet(word))

/** Whether a password is a name, a part of it or its reverse, with a few characters added or changed. */
function isSimilar(password: string, name: string): boolean {
  const own = bare(password)
  const written = unleet(own)
  const [local = ''] = name.split('@')
  const parts = [name, local, ...local.split(/[^\p{L}\p{N}]+/u)].map(bare).filter((part) => part.length >= tellingName)
  return parts.some((part) =>
    // oxlint-disable-next-line typescript/no-misused-spread -- `bare` has left nothing that joins code points
    [part, [...part].reverse().join('')].some((form) =>
      [own, written].some(
        (password) =>
          (password.includes(form) && form.length * 2 >= password.length) || distanceUpTo(password, form, 2),
      ),
    ),
  )
}

/** The text in lower case, without signs; @, $ and ! stay within it, because they may replace letters. */
const bare = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}@$!]/gu, '')
    .replace(/^[@$!]+|(?<![@$!])[@$!]+$/g, '')

const leet: Readonly<Record<string, string>> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '@': 'a',
  $: 's',
  '!': 'i',
}
const unleet = (text: string): string => text.replace(/[013457@$!]/g, (sign) => leet[sign] ?? sign)

/** Whether the edit distance is at most `most`. */
function distanceUpTo(a: string, b: string, most: number): boolean {
  if (Math.abs(a.length - b.length) > most || a.length > 256) return false
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return (row[b.length] ?? most + 1) <= most
}
