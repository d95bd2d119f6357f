// Those tests with a store on PostgreSQL.
import './audit-seals.test.ts'
