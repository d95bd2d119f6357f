// Those tests with more seeds.
import './paced-queue.test.ts'
