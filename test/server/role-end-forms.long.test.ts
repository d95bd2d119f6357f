// Those tests at each path and with each type.
import './role-end-forms.test.ts'
