// With the prompts on a terminal: see there.
import './login.test.ts'
