import com.google.gson.Gson;
import java.util.*;
import java.util.function.Supplier;
import net.servicestack.client.*;
import org.example.Dtos.*;

/** Drives the Java client library at the server that the first argument names, and prints what came back as JSON. */
public class Client {
  static final Map<String, Object> report = new LinkedHashMap<>();

  static <T> T note(String name, Supplier<T> call) {
    try {
      T answer = call.get();
      report.put(name, answer);
      return answer;
    } catch (WebServiceException error) {
      ResponseStatus status = error.getResponseStatus();
      report.put(name, Map.of("status", error.getStatusCode(), "error", status == null ? "none" : status));
      return null;
    }
  }

  static Map<String, Object> facts(HealthCheckResponse health) {
    MonitorExecutionMetrics metrics = health.getExecutionMetrics();
    Map<String, Object> facts = new LinkedHashMap<>();
    facts.put("status", health.getStatus());
    facts.put("failed", health.getFailedMonitorCount());
    facts.put("monitors", health.getMonitorSummaries().size());
    facts.put("resultsPassed", health.getMonitorSummaries().stream().flatMap(one -> one.getResults().stream())
        .allMatch(one -> one.getStatus() == MonitoringStatus.Success));
    facts.put("start", metrics.getStartDateTime().getTime());
    facts.put("end", metrics.getEndDateTime().getTime());
    facts.put("duration", metrics.getDuration().toXsdDuration());
    return facts;
  }

  static HealthCheckRequest health(ServerType type) {
    return new HealthCheckRequest().setExecutionMode(ExecutionMode.Basic).setServerType(type);
  }

  static Authenticate ann(String password) {
    return new Authenticate().setProvider("credentials").setUserName("Ann").setPassword(password);
  }

  static AssignRoles assign(String... roles) {
    return new AssignRoles().setUserName("Ned").setRoles(new ArrayList<>(List.of(roles)));
  }

  public static void main(String[] arguments) {
    String url = arguments[0], password = arguments[1];
    JsonServiceClient client = new JsonServiceClient(url);
    note("health by GET", () -> facts(client.get(health(ServerType.App))));
    note("health by POST", () -> facts(client.post(health(ServerType.App))));
    note("health by its own verb", () -> facts(client.send(health(ServerType.App))));
    note("unhealthy", () -> client.get(health(ServerType.Ftp)));
    note("unhealthy, suppressed", () -> facts(client.get(health(ServerType.Ftp).setSuppressErrorCodes(true))));
    note("field errors", () -> client.get(new HealthCheckRequest()));
    note("nobody", () -> client.post(assign("R1")));
    note("wrong password", () -> client.post(ann("wrong")));
    AuthenticateResponse session = note("sign-in", () -> client.post(ann(password)));
    note("assign", () -> client.post(assign("R1", "R2")).getAllRoles());
    note("unassign", () -> client.post(new UnAssignRoles().setUserName("Ned")
        .setRoles(new ArrayList<>(List.of("R1")))).getAllRoles());
    note("user that does not exist", () -> client.post(assign("R1").setUserName("nobody")));
    note("heartbeat", () -> client.post(new ReportHeartbeat().setName("agent-1").setStatus(HeartbeatStatus.Ok)
        .setInterval(new TimeSpan(0, 5, 0)).setSentAt(new Date())).getReceivedAt().getTime());

    JsonServiceClient byToken = new JsonServiceClient(url, false);
    byToken.clearCookies();
    byToken.setBearerToken(session.getBearerToken());
    note("by token", () -> byToken.post(assign()).getAllRoles());
    byToken.clearCookies();
    // With an access token the library does not renew it, so it gets the refresh token alone.
    byToken.setBearerToken(null);
    byToken.setRefreshToken(session.getRefreshToken());
    note("by refresh token", () -> byToken.post(assign()).getAllRoles());
    report.put("renewed token", byToken.getBearerToken() != null);

    JsonServiceClient last = new JsonServiceClient(url);
    note("sign-in again", () -> last.post(ann(password)).getUserName());
    note("sign-out", () -> last.post(new Authenticate().setProvider("logout")));
    note("after", () -> last.post(assign("R1")));

    JsonServiceClient remembered = new JsonServiceClient(url);
    note("remembered sign-in", () -> remembered.post(ann(password).setRememberMe(true)).getUserName());
    note("by the remembered cookie", () -> remembered.post(assign()).getAllRoles());
    System.out.println(new Gson().toJson(report));
  }
}
