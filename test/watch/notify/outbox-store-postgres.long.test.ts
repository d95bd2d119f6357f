// Those tests with a store on PostgreSQL.
import './outbox-store.test.ts'
