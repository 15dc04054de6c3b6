import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Runs every scenario and prints one line for each. A scenario is a method, listed with its name of scenarios.txt. */
final class Main {
    private static final int SCENARIO_SECONDS_MAX = 120;

    @FunctionalInterface
    interface Scenario {
        void run(Bench bench) throws Exception;
    }

    public static void main(String[] args) {
        Map<String, Scenario> scenarios = new LinkedHashMap<>();
        Tables.list(scenarios);
        Entities.list(scenarios);
        Queries.list(scenarios);
        Transactions.list(scenarios);
        Access.list(scenarios);
        Service.list(scenarios);

        int[] passedAndFailed = new int[2];
        scenarios.forEach((name, scenario) -> {
            String reason = attempt(scenario);
            System.out.println(reason == null ? "ok " + name : "FAIL " + name + ": " + reason);
            passedAndFailed[reason == null ? 0 : 1]++;
        });
        System.out.println(passedAndFailed[0] + " passed, " + passedAndFailed[1] + " failed");
        System.exit(passedAndFailed[1] == 0 ? 0 : 1);
    }

    /** Runs one scenario and returns why it failed, or null. */
    private static String attempt(Scenario scenario) {
        ExecutorService thread = Executors.newSingleThreadExecutor();
        Bench bench = new Bench();
        try {
            thread.submit(() -> {
                scenario.run(bench);
                return null;
            }).get(SCENARIO_SECONDS_MAX, TimeUnit.SECONDS);
            return null;
        } catch (ExecutionException failure) {
            Throwable cause = failure.getCause();
            boolean own = cause instanceof Bench.Failure;
            String reason = (own ? cause.getMessage() : cause.toString()).replaceAll("\\s+", " ");
            return reason.substring(0, Math.min(reason.length(), 300));
        } catch (InterruptedException | TimeoutException late) {
            return "no result after " + SCENARIO_SECONDS_MAX + " s";
        } finally {
            thread.shutdownNow();
            bench.clear();
        }
    }
}
