// Those tests with all runs of each property.
import './hostile.test.ts'
