// With what the shells make of the scripts: see there.
import './completion.test.ts'
