import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.nio.file.*;
import java.util.*;
import java.util.stream.*;
import net.servicestack.client.*;

/** ServiceStack's client for Java: answers with its instants and durations, as its JsonServiceClient reads them. */
public class Reader {
  static class Answer { int FailedMonitorCount; List<Monitor> MonitorSummaries; Metrics ExecutionMetrics; }
  static class Monitor { String MonitorName; String Status; }
  static class Metrics { Date StartDateTime; Date EndDateTime; TimeSpan Duration; }

  static double seconds(TimeSpan span) {
    long whole = ((span.getDays() * 24L + span.getHours()) * 60 + span.getMinutes()) * 60 + span.getSeconds();
    return whole + span.getMillis() / 1000.0;
  }

  static Map<String, Object> read(Gson gson, Path path) throws Exception {
    String text = Files.readString(path);
    Map<String, Object> seen = new LinkedHashMap<>();
    Answer answer = text.isEmpty() ? new Answer() : gson.fromJson(text, Answer.class);
    List<Monitor> monitors = text.isEmpty() ? List.of() : answer.MonitorSummaries;
    seen.put("tests", monitors.size());
    seen.put("failed", answer.FailedMonitorCount);
    seen.put("skipped", null);
    seen.put("alerts", monitors.stream().filter(one -> one.Status.equals("Failure")).map(one -> one.MonitorName)
        .sorted().collect(Collectors.toList()));
    Metrics metrics = answer.ExecutionMetrics;
    seen.put("figures", metrics == null ? Map.of() : Map.of(
        "seconds", seconds(metrics.Duration),
        "start", metrics.StartDateTime.getTime(),
        "end", metrics.EndDateTime.getTime()));
    return seen;
  }

  public static void main(String[] arguments) throws Exception {
    Gson gson = new JsonServiceClient("http://127.0.0.1:1").getGson();
    Map<String, Object> runs = new TreeMap<>();
    try (Stream<Path> files = Files.list(Path.of(arguments[1]))) {
      for (Path file : files.collect(Collectors.toList())) {
        try {
          runs.put(file.getFileName().toString(), read(gson, file));
        } catch (Exception error) {
          runs.put(file.getFileName().toString(), Map.of("error", error.toString()));
        }
      }
    }
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("version", arguments[0]);
    all.put("runs", runs);
    System.out.println(new GsonBuilder().serializeNulls().create().toJson(all));
  }
}
