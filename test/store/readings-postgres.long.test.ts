// Those tests with a store on PostgreSQL.
import './readings.test.ts'
