import { expect, test } from 'vitest'
import { withNextStep } from '../../../src/core/checks/engine/next-steps.ts'
import { fail, ok, type Result } from '../../../src/core/checks/engine/result.ts'

const correction = { origins: ['{env: DB_PASSWORD}'], tryNow: "try now: svc monitors test 'redis queue'" }
const stepsOf = (results: readonly Result[]) => withNextStep(results, correction).map(({ details = [] }) => details)

test.each([
  [
    'H40 a port where nothing listens',
    fail('connect', 'refused', '10.0.0.5:6379 refused the connection in 2 ms: host up, nothing listens on that port'),
    /^next: on its host, ss -ltn /,
  ],
  [
    'H40 a silent peer',
    fail('connect', 'timeout', '10.0.0.5:6379 accepted the connection but sent nothing for 9.8 s'),
    /^next: on its host, ss -ltnp .*\(ps -o stat,args -p PID shows T\)/,
  ],
  [
    'H40 a refused sign-in is tried after the correction only',
    fail('connect', 'auth', '10.0.0.5:6379 refused the sign-in of "app": wrong password'),
    /^next: correct \{env: DB_PASSWORD\} or the account; then try now: svc monitors test 'redis queue'$/,
  ],
  [
    'H40 an expired certificate',
    fail('connect', 'tls', '10.0.0.5:6379: certificate "a" expired on 2026-11-21 18:34 UTC, 2 d ago'),
    /^next: renew the certificate, .*; then try now: svc monitors test 'redis queue'$/,
  ],
  [
    'H40 a missing route',
    fail('connect', 'refused', 'no route to 10.0.0.5:6379: network or firewall, not the service'),
    /^next: ip route get ADDRESS /,
  ],
  [
    'H40 a missing route that the program ping reports',
    fail('loss', 'refused', '10.0.0.5: ping reports "/usr/bin/ping: connect: Network is unreachable"'),
    /^next: ip route get ADDRESS /,
  ],
  [
    'H40 a missing route to the data port of FTP',
    fail('EPSV', 'refused', 'after signing in, 10.0.0.5:50000, connect has no route (control peer 10.0.0.5): firewall'),
    /^next: ip route get ADDRESS /,
  ],
  [
    'H40 a name that does not exist',
    fail('connect', 'dns', 'db.example.test does not resolve: no such name'),
    /^next: correct the name in svc\.yaml, .*; then try now: svc monitors test 'redis queue'$/,
  ],
  [
    'H40 a name that a driver cannot resolve',
    fail('connect', 'dns', 'the name of db.example.test:27017 does not resolve (ENOTFOUND)'),
    /^next: correct the name in svc\.yaml, /,
  ],
  [
    'H40 a name server that does not answer',
    fail('connect', 'dns', 'db.example.test does not resolve: the name server did not answer'),
    /^next: \/etc\/resolv\.conf lists the name servers .*; then try now: svc monitors test 'redis queue'$/,
  ],
])('%s offers the next step as its first detail', (_, failure, step) => {
  const [before, first, again] = stepsOf([ok('name', 'fine'), { ...failure, details: ['a detail'] }, failure])
  expect([before, again]).toEqual([[], []])
  expect(first).toEqual([expect.stringMatching(step), 'a detail'])
})

test('H40 other failures and warnings keep their own details', () => {
  const others = [
    fail('memory', 'threshold', '97 % of memory', { details: ['a detail'] }),
    fail('connect', 'tls', '10.0.0.5:6379 does not speak TLS on this port'),
    { ...fail('connect', 'auth', 'refused'), status: 'warning' } as Result,
  ]
  expect(withNextStep(others, correction)).toEqual(others)
})
