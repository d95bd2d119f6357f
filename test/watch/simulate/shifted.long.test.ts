// Those tests at more moments.
import './shifted.test.ts'
