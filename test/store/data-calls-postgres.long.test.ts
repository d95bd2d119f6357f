// Those tests with a store on PostgreSQL.
import './data.test.ts'
