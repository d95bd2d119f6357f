/**
 * A person with a browser without scripts: opens an address, and submits each form that it shows, until a page has
 * none. Runs as a program, for BROWSER, or in a test.
 */
const filled: Readonly<Record<string, string>> = {
  login: process.env['PERSON'] ?? 'carol',
  username: process.env['PERSON'] ?? 'carol',
  password: process.env['PERSON_PASSWORD'] ?? 'any password',
}

const attribute = (tag: string, name: string): string | undefined =>
  new RegExp(`\\b${name}="([^"]*)"`)
    .exec(tag)?.[1]
    ?.replaceAll('&amp;', '&')
    .replaceAll('&#x3D;', '=')
    .replaceAll('&#39;', "'")

/** Returns the address and the text of the last page. With `declines`, the person refuses the device. */
export async function signInAsPerson(
  address: string,
  { declines = false }: { readonly declines?: boolean } = {},
): Promise<{ readonly url: string; readonly status: number; readonly text: string; readonly headers: Headers }> {
  const cookies = new Map<string, Map<string, string>>()
  let url = address
  let form: URLSearchParams | undefined
  let declined = false
  for (let step = 0; step < 30; step += 1) {
    const { host } = new URL(url)
    const jar = cookies.get(host) ?? new Map<string, string>()
    cookies.set(host, jar)
    const response = await fetch(url, {
      method: form ? 'POST' : 'GET',
      ...(form ? { body: form } : {}),
      redirect: 'manual',
      headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') },
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '' || /expires=Thu, 01 Jan 1970|max-age=0/i.test(line)) jar.delete(name)
      else jar.set(name, value)
    }
    const location = response.headers.get('location')
    if (location !== null) {
      await response.arrayBuffer()
      url = new URL(location, url).href
      form = undefined
      continue
    }
    const text = await response.text()
    const [whole] = /<form[\s\S]*?<\/form>/.exec(text) ?? []
    if (declined || whole === undefined || new URL(url).pathname === '/callback') {
      return { url, status: response.status, text, headers: response.headers }
    }
    form = new URLSearchParams()
    for (const [tag] of whole.matchAll(/<input[^>]*>/g)) {
      const name = attribute(tag, 'name')
      if (name !== undefined) form.set(name, filled[name] ?? attribute(tag, 'value') ?? '')
    }
    if (declines && form.has('confirm')) {
      form.set('abort', 'yes')
      declined = true
    }
    const action = attribute(/<form[^>]*>/.exec(whole)?.[0] ?? '', 'action')
    url = new URL(action ?? url, url).href
  }
  throw new Error(`too many pages, the last at ${url}`)
}

if (process.argv[1] === import.meta.filename) await signInAsPerson(process.argv[2] ?? '')
