// With the questions on a terminal: see there.
import './init.test.ts'
