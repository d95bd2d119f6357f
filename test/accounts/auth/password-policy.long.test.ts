// Those tests with all of their random passwords.
import './password-policy.test.ts'
