// Those tests with each grant for each user, in every form, with every credential.
import './temporary-admin.test.ts'
