// Those tests with more runs of the property.
import './served.test.ts'
