import { parseDocument } from './document.ts'

/**
 * Loads what reading another svc.yaml may need, whatever it contains, except for the kinds that it names: a reload must
 * not depend on free file descriptors more than its own files do.
 */
export const preloadReading = async (): Promise<unknown> =>
  await Promise.all([
    parseDocument(''),
    import('./auth.ts'),
    import('./drill.ts'),
    import('./excerpt.ts'),
    import('./former-keys.ts'),
    import('./include.ts'),
    import('./merge.ts'),
    import('./notify.ts'),
    import('./profile-use.ts'),
    import('./profiles.ts'),
    // Loads croner.
    import('../base/cron.ts').then(({ readCron }) => readCron('@daily', 'UTC')),
    import('./silences.ts'),
    import('./schedule-load.ts'),
    // Loads what regular expressions need.
    import('../checks/assert/expectation.ts').then(({ patternWarning }) => patternWarning('/a/')),
  ])
