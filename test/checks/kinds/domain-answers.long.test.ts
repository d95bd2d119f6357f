// Those tests with a store on PostgreSQL.
import './domain-answers.test.ts'
