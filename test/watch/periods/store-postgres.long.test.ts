// Those tests with a store on PostgreSQL.
import './store.test.ts'
