import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const helps = readdirSync(join(root, 'test/snapshot/help')).map((name) => `test/snapshot/help/${name}`)
const guides = [
  'agents',
  'clients',
  'first-ten-minutes',
  'install',
  'metrics',
  'serve',
  'sign-in',
  'svc.yaml',
  'tested',
]
const pages = ['README.md', ...guides.map((name) => `docs/${name}.md`), ...helps]

/** Phrases that need a guess: a figure of speech, or a sentence that does not name its subject. */
const phrases = [
  /\bhow (?:it|they) (?:is|are)\b/i,
  /\bwhat users hold\b/i,
  /\bwho (?:did|may (?:change|do)) what\b/i,
  /\b(?:survive the night|at 3 am|is 3 am)\b/i,
  /\bbeats (?:it|its)\b/i,
  /\b(?:in force|secrets lie|still lines|never cut|fallen silent|sign-ins that count)\b/i,
  /\b(?:take|set) something\b/i,
  /\bwhat there is to say\b/i,
  /\bmeans to report\b/i,
  /\bhow deep to look\b/i,
  /\bwhether it is there\b/i,
  /^ +\S+ +Its (?:name|value)\b/m,
  /\bconfiguration from before\b/,
  /\bshows what it takes\b/,
  /\boverwrites nothing\b/,
  /\bthe same answers over HTTP\b/,
  /\b(?:ages|is|are) looked at\b/,
  /\b(?:goes|go) unseen\b/,
  /\bonly when (?:somebody|someone) asks\b/,
  /\basks for (?:a|the|two)\b[^.]{0,20}\bpasswords?\b/,
  /@svc-cli\/svc\//,
]

test('the help and the first pages say what they mean in standard terms', () => {
  expect(helps.length).toBeGreaterThan(40)
  const matches = pages.flatMap((page) => {
    const text = readFileSync(join(root, page), 'utf8').replaceAll(/\n {2,}(?=\S)/g, ' ')
    return phrases.flatMap((phrase) => phrase.exec(text)?.[0].replace(/^/, `${page}: `) ?? [])
  })
  expect(matches).toEqual([])
})
