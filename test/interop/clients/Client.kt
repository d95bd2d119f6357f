import com.google.gson.Gson
import java.util.Date
import net.servicestack.client.JsonServiceClient
import net.servicestack.client.TimeSpan
import net.servicestack.client.WebServiceException
import org.example.*

val report = LinkedHashMap<String, Any?>()

fun <T> note(name: String, call: () -> T): T? =
    try {
        call().also { report[name] = it }
    } catch (error: WebServiceException) {
        report[name] = mapOf("status" to error.statusCode, "error" to error.responseStatus)
        null
    }

fun facts(health: HealthCheckResponse) = mapOf(
    "status" to health.Status,
    "failed" to health.FailedMonitorCount,
    "monitors" to health.MonitorSummaries.size,
    "start" to health.ExecutionMetrics?.StartDateTime?.time,
    "duration" to health.ExecutionMetrics?.Duration?.toXsdDuration(),
)

fun health(type: ServerType) = HealthCheckRequest().apply {
    ExecutionMode = org.example.ExecutionMode.Basic
    ServerType = type
}

fun assign(vararg roles: String) = AssignRoles().apply {
    UserName = "Ned"
    Roles = arrayListOf(*roles)
}

fun ann(password: String) = Authenticate().apply {
    provider = "credentials"
    UserName = "Ann"
    Password = password
}

/** Drives the Java client library from Kotlin at the server that the first argument names, and prints what came back. */
fun main(arguments: Array<String>) {
    val (url, password) = arguments
    val client = JsonServiceClient(url)
    note("health by GET") { facts(client.get(health(ServerType.App))) }
    note("health by its own verb") { facts(client.send(health(ServerType.App))) }
    note("unhealthy") { client.get(health(ServerType.Ftp)) }
    note("unhealthy, suppressed") { facts(client.get(health(ServerType.Ftp).apply { SuppressErrorCodes = true })) }
    note("field errors") { client.get(HealthCheckRequest()) }
    note("nobody") { client.post(assign("R1")) }
    note("wrong password") { client.post(ann("wrong")) }
    note("sign-in") { client.post(ann(password)) }
    note("assign") { client.post(assign("R1", "R2")).AllRoles }
    note("unassign") { client.post(UnAssignRoles().apply { UserName = "Ned"; Roles = arrayListOf("R1") }).AllRoles }
    note("heartbeat") {
        client.post(ReportHeartbeat().apply {
            Name = "agent-1"
            Status = HeartbeatStatus.Ok
            Interval = TimeSpan(0, 5, 0)
            SentAt = Date()
        }).ReceivedAt?.time
    }
    note("sign-out") { client.post(Authenticate().apply { provider = "logout" }) }
    note("after") { client.post(assign("R1")) }
    println(Gson().toJson(report))
}
