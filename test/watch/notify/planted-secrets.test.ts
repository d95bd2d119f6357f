import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { type Delivery, receiverKinds } from '../../../src/core/watch/notify/index.ts'
import { notice, opened, signal } from '../../support/notify/notice.ts'
import { receiverRows } from '../../support/notify/receiver-rows.ts'
import { startSmtp } from '../../support/servers/smtp.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'

/** Secrets as settings and answers may contain them. */
const secrets = {
  token: 'plant01-Zq8nT3',
  basic: 'plant02-Zq8nT3',
  hookPath: 'plant03-Zq8nT3',
  hookQuery: 'plant04-Zq8nT3',
  hookUser: 'plant05-Zq8nT3',
  hookPassword: 'plant06-Zq8nT3',
  hookKey: Buffer.from('plant07-Zq8nT3-plant07-Zq8nT3-07').toString('base64'),
  plainPath: 'plant08-Zq8nT3',
  plainQuery: 'plant09-Zq8nT3',
  mail: 'plant10-Zq8nT3',
  inText: 'plant11-Zq8nT3',
  inVictim: 'plant12-Zq8nT3',
  inRunbook: 'plant13-Zq8nT3',
  inItem: 'plant14-Zq8nT3',
  inCheck: 'plant15-Zq8nT3',
  encoded: 'plant16 Zq8nT3',
  redirect: 'plant17-Zq8nT3',
  instance: 'plant18-Zq8nT3',
  inFault: 'plant19-Zq8nT3',
  inIncident: 'plant20-Zq8nT3',
}
const inUrl = (secret: string): string => `postgres://ann:${secret}@db1/orders`
const hostile = notice(
  {
    text: `cannot connect to ${inUrl(secrets.inText)}`,
    fault: inUrl(secrets.inFault),
    incident: inUrl(secrets.inIncident),
    victims: { count: 1, names: [inUrl(secrets.inVictim)] },
    runbook: inUrl(secrets.inRunbook),
  },
  { item: inUrl(secrets.inItem), check: inUrl(secrets.inCheck) },
)

/** The parts of a secret that a text shows, also encoded. */
const leaks = (output: string): readonly string[] =>
  Object.entries(secrets).flatMap(([name, secret]) =>
    [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64').replace(/=+$/, '')].some((form) =>
      output.includes(form),
    )
      ? [name]
      : [],
  )

test('M5 of 20 secrets in settings and answers, none is in a body, a list, a delivery or a warning', async () => {
  const bodies: string[] = []
  let status = 200
  await using peer = await httpPeer((request, response) => {
    void text(request).then((body) => {
      bodies.push(body)
      // A server that repeats all that it was sent.
      const echo = `${request.url} ${decodeURIComponent(request.url ?? '')} ${JSON.stringify(request.headers)}`
      response.writeHead(request.method === 'GET' && status !== 401 ? 200 : status, {
        Location: `http://x:${secrets.redirect}@127.0.0.1:1/${secrets.redirect}?t=${secrets.redirect}`,
      })
      response.end(echo)
    })
  })
  await using mail = await startSmtp({
    authInClear: true,
    allowInsecureAuth: true,
    hideSTARTTLS: true,
    onAuth: (auth, _, done) =>
      void done(
        Object.assign(new Error(`no ${auth.password} ${Buffer.from(auth.password ?? '').toString('base64')}`), {
          responseCode: 535,
        }),
      ),
  })
  const env = {
    TOKEN: secrets.token,
    BASIC: secrets.basic,
    MAIL: secrets.mail,
    KEY: `whsec_${secrets.hookKey}`,
    HOOK:
      peer.origin.replace('//', `//${secrets.hookUser}:${secrets.hookPassword}@`) +
      `/hooks/${secrets.hookPath}/${encodeURIComponent(secrets.encoded)}?token=${secrets.hookQuery}`,
  }
  const receivers = receiverKinds.flatMap(({ name: kind }) => {
    const planted = receiverRows[kind]?.planted ?? 'no secrets'
    const settings = typeof planted === 'string' ? [] : planted({ origin: peer.origin, mail: mail.port })
    return settings.map((own, index) => JSON.stringify({ name: `${kind}${index}`, kind, ...own }))
  })
  const texts: string[] = []
  for (const receiver of receivers) {
    const { receiver: one, warnings } = await opened(receiver, { env })
    texts.push(JSON.stringify(one.describe()))
    const deliveries: Delivery[] = []
    for (status of [200, 302, 400, 401, 503]) deliveries.push(await one.send([hostile], signal()))
    if (one.renew) deliveries.push(await one.renew([hostile], true, signal()))
    texts.push(JSON.stringify(one.describe()), ...deliveries.map((delivery) => JSON.stringify(delivery)), ...warnings)
    expect(deliveries.some(({ what }) => what !== 'accepted')).toBe(true)
  }
  // Each of them was sent, so that the servers could repeat it.
  const sent = JSON.stringify(peer.requests().map(({ url, headers }) => [decodeURIComponent(url ?? ''), headers]))
  for (const secret of ['token', 'hookPath', 'hookQuery', 'plainPath', 'plainQuery', 'instance', 'encoded'] as const)
    expect(sent).toContain(secrets[secret])
  expect(bodies.length).toBeGreaterThan(15)
  expect(Object.keys(secrets)).toHaveLength(20)
  expect(leaks(texts.join('\n'))).toEqual([])
  expect(leaks(bodies.join('\n'))).toEqual([])
})
