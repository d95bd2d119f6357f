import { temporaryFolder } from '../suite/temporary-folder.ts'
import { type Home, svcHome } from './svc.ts'

/** svc with a settings folder that exists until the end of the test that asks for it or, outside of tests, of the suite. */
export const temporaryHome = (): Home => svcHome(undefined, temporaryFolder())
