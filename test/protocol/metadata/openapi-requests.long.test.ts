// Those tests with all runs of each property.
import './openapi-requests.test.ts'
