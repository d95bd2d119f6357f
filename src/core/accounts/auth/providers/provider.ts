import type { ConfiguredFiles } from '../../../base/files/index.ts'
import type { Authenticate } from '../../../protocol/index.ts'
import type { BrowserSignIn, Call } from '../../../protocol/service/service.ts'
import type { Data, Settlement, User } from '../../../store/index.ts'
import type { Paces } from '../paces.ts'
import type { Passwords } from '../passwords.ts'

/** An OpenID provider, as svc.yaml describes it (A13). */
export type OpenIdSettings = {
  /** In lower case. */
  readonly name: string
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret?: { readonly reveal: (files: ConfiguredFiles) => Promise<string> } | undefined
  readonly audience?: string | undefined
  readonly scope: string
  readonly label?: string | undefined
  readonly roles?: { readonly claim: string; readonly map: Readonly<Record<string, string>> } | undefined
  /** Milliseconds. */
  readonly tolerance: number
  readonly caFile?: string | undefined
}

/** The ways to sign in besides passwords, as svc.yaml turns them on. */
export type WaysToSignIn = {
  /** By HTTP Digest, for users that have a digest secret (A12). */
  readonly digest: boolean
  /** Whether digests with MD5 are accepted besides those with SHA-256. */
  readonly digestMd5: boolean
  readonly openid?: readonly OpenIdSettings[] | undefined
}
export const passwordsOnly: WaysToSignIn = { digest: false, digestMd5: false }

/** The dependencies of providers that verify identities. */
export type ProviderContext = {
  readonly data: Data
  readonly passwords: Passwords
  readonly now: () => number
  readonly paces: Paces
  readonly ways: WaysToSignIn
}

/** A verified user, with the roles that this sign-in has from claims. They are not grants. */
export type VerifiedUser = User & {
  readonly claimedRoles?: readonly string[] | undefined
  /**
   * The changes that the right secret makes to the limits of the name. Whoever gets the user stores them
   * (`settleSignIn`).
   */
  readonly settles?: Settlement | undefined
}

type ProviderCall = Pick<Call, 'caller' | 'correlationId' | 'signal' | 'signed'>

/** A step of a sign-in by redirects. */
export type BrowserStep =
  /** The browser goes to the provider and brings `sealed` back. */
  | { readonly kind: 'leave'; readonly url: string; readonly sealed: string }
  | {
      readonly kind: 'arrive'
      readonly user: VerifiedUser
      readonly permanent: boolean
      /** Where the browser asked to go after the sign-in. */
      readonly continueTo: string | undefined
    }

export type Provider = {
  /** Returns the verified user; throws a Fault otherwise. Counts and audits failures itself. */
  readonly signIn: (context: ProviderContext, request: Authenticate, call: ProviderCall) => Promise<VerifiedUser>
  /** Sign-in by redirects. Absent: a GET is refused (A5). Throws like `signIn`. */
  readonly browse?: (
    context: ProviderContext,
    browser: BrowserSignIn,
    options: { readonly permanent: boolean; readonly continueTo: string | undefined },
    call: ProviderCall,
  ) => Promise<BrowserStep>
  /** The challenges that a refusal carries (`WWW-Authenticate`), for providers that need one. */
  readonly challenges?: (
    context: Pick<ProviderContext, 'data' | 'now' | 'ways'>,
    stale: boolean,
  ) => Promise<readonly string[]>
}
