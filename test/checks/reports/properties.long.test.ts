// Those tests with all runs of each property.
import './properties.test.ts'
