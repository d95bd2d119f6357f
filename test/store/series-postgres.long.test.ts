// Those tests with a store on PostgreSQL.
import './series.test.ts'
