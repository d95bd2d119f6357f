// Those tests with the other services.
import './services-outbox.test.ts'
