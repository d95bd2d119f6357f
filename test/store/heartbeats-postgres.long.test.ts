// Those tests with a store on PostgreSQL.
import './heartbeats.test.ts'
