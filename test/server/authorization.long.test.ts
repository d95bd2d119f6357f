// Those tests with every path, every caller and every way of its credential.
import './authorization.test.ts'
