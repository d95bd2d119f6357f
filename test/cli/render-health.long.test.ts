// Those tests with all runs of each property.
import './render-health.test.ts'
