// Those tests with a store on PostgreSQL.
import './silences.test.ts'
