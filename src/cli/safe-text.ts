/**
 * Text from servers and files before it is shown (K6): without terminal escapes, control and bidi
 * characters, and without the user information of URLs. Reports use the same two functions.
 */
export { clean as safeText, oneLine as safeLine } from '../core/reports/index.ts'
