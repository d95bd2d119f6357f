// Those tests with a store on PostgreSQL.
import './grant-ends.test.ts'
