// By the built program: see there.
import './exit-codes.test.ts'
