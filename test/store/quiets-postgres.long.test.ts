// Those tests with a store on PostgreSQL.
import './quiets.test.ts'
