// Those tests with a store on PostgreSQL.
import './renamed-permission.test.ts'
