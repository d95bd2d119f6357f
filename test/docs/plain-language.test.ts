import { expect, test } from 'vitest'
import { unclearPhrases } from '../support/suite/plain-language.ts'
import { read } from '../support/suite/repository.ts'

const guides = [
  'agents',
  'clients',
  'for-administrators',
  'for-operators',
  'for-pipelines',
  'install',
  'metrics',
  'serve',
  'sign-in',
  'svc.yaml',
  'tested',
  'testing-alarms',
]

test.each(['README.md', ...guides.map((name) => `docs/${name}.md`)])(
  '%s says what it means in standard terms',
  (page) => {
    expect(unclearPhrases(read(page))).toEqual([])
  },
)
