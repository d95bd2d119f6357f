using System;
using System.Linq;
using ServiceStack;
using Svc.ServiceModel;

public static class Client
{
    public static void Main()
    {
        var request = new HealthCheckRequest { ExecutionMode = ExecutionMode.Basic, ServerType = ServerType.Sql };
        IReturn<HealthCheckResponse> returns = request;
        var routes = typeof(HealthCheckRequest).GetCustomAttributes(typeof(RouteAttribute), false).Cast<RouteAttribute>();
        Console.WriteLine(string.Join(" ", (int)ExecutionMode.Basic, (int)ServerType.Agents, returns is IGet));
        Console.WriteLine(string.Join(" ", routes.Select(route => route.Verbs + " " + route.Path)));
        var response = new HealthCheckResponse { FailedMonitorCount = 1, ExecutionMetrics = new MonitorExecutionMetrics() };
        TimeSpan? duration = response.ExecutionMetrics.Duration;
        DateTime? start = response.ExecutionMetrics.StartDateTime;
        Console.WriteLine(string.Join(" ", duration.HasValue, start.HasValue, response.Status.HasValue));
    }
}
