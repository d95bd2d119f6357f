// Those tests with all runs of each property.
import './roundtrip.test.ts'
