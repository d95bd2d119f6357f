// Those tests with more random scripts.
import './script.test.ts'
