// Those tests at more moments.
import './heartbeat-schedule.test.ts'
