// Those tests with more processes.
import './migrate.test.ts'
