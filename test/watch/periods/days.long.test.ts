// Those tests with a history of more than a year.
import './days.test.ts'
