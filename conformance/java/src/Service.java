import com.azure.data.tables.models.TableServiceCorsRule;
import com.azure.data.tables.models.TableServiceGeoReplication;
import com.azure.data.tables.models.TableServiceGeoReplicationStatus;
import com.azure.data.tables.models.TableServiceLogging;
import com.azure.data.tables.models.TableServiceMetrics;
import com.azure.data.tables.models.TableServiceProperties;
import com.azure.data.tables.models.TableServiceRetentionPolicy;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

final class Service {
    static void list(Map<String, Main.Scenario> scenarios) {
        scenarios.put("service_properties_round_trip", Service::servicePropertiesRoundTrip);
        scenarios.put("service_stats", Service::serviceStats);
    }

    private static TableServiceRetentionPolicy days(int count) {
        return new TableServiceRetentionPolicy().setEnabled(true).setDaysToRetain(count);
    }

    private static List<Object> values(TableServiceRetentionPolicy policy) {
        return Arrays.asList(policy.isEnabled(), policy.getDaysToRetain());
    }

    private static List<Object> values(TableServiceLogging logging) {
        return Arrays.asList(logging.getAnalyticsVersion(), logging.isDeleteLogged(), logging.isReadLogged(),
            logging.isWriteLogged(), values(logging.getRetentionPolicy()));
    }

    private static List<Object> values(TableServiceMetrics metrics) {
        return Arrays.asList(metrics.getVersion(), metrics.isEnabled(), metrics.isIncludeApis(),
            values(metrics.getTableServiceRetentionPolicy()));
    }

    private static List<Object> values(TableServiceCorsRule rule) {
        return Arrays.asList(rule.getAllowedOrigins(), rule.getAllowedMethods(), rule.getAllowedHeaders(),
            rule.getExposedHeaders(), rule.getMaxAgeInSeconds());
    }

    static void servicePropertiesRoundTrip(Bench bench) {
        TableServiceProperties before = bench.service.getProperties();
        TableServiceLogging logging = new TableServiceLogging().setAnalyticsVersion("1.0")
            .setDeleteLogged(true)
            .setReadLogged(false)
            .setWriteLogged(true)
            .setRetentionPolicy(days(5));
        TableServiceMetrics hour = new TableServiceMetrics().setVersion("1.0")
            .setEnabled(true)
            .setIncludeApis(true)
            .setRetentionPolicy(days(7));
        TableServiceMetrics minute = new TableServiceMetrics().setVersion("1.0")
            .setEnabled(false)
            .setRetentionPolicy(new TableServiceRetentionPolicy().setEnabled(false));
        TableServiceCorsRule rule = new TableServiceCorsRule()
            .setAllowedOrigins("http://www.contoso.com,http://www.fabrikam.com")
            .setAllowedMethods("GET,PUT")
            .setAllowedHeaders("x-ms-meta-abc,x-ms-meta-data*")
            .setExposedHeaders("x-ms-meta-abc,x-ms-meta-data*")
            .setMaxAgeInSeconds(500);
        try {
            bench.service.setProperties(new TableServiceProperties().setLogging(logging)
                .setHourMetrics(hour)
                .setMinuteMetrics(minute)
                .setCorsRules(List.of(rule)));
            TableServiceProperties got = bench.service.getProperties();
            Bench.equal(values(got.getLogging()), values(logging));
            Bench.equal(values(got.getHourMetrics()), values(hour));
            Bench.equal(values(got.getMinuteMetrics()), values(minute));
            Bench.equal(got.getCorsRules().size(), 1);
            Bench.equal(values(got.getCorsRules().get(0)), values(rule));
        } finally {
            bench.service.setProperties(before);
        }
    }

    /** The SDK asks for statistics where it is pointed to, so it is pointed to the secondary endpoint. */
    static void serviceStats(Bench bench) {
        String account = Bench.ACCOUNT;
        String secondary = Bench.ENDPOINT.endsWith("/" + account)
            ? Bench.ENDPOINT + "-secondary"
            : Bench.ENDPOINT.replace("//" + account + ".", "//" + account + "-secondary.");
        TableServiceGeoReplication replication
            = Bench.service(secondary, System.getenv("TABLES_KEY")).getStatistics().getGeoReplication();
        TableServiceGeoReplicationStatus status = replication.getStatus();
        Bench.check(List.of(TableServiceGeoReplicationStatus.LIVE, TableServiceGeoReplicationStatus.BOOTSTRAP,
            TableServiceGeoReplicationStatus.UNAVAILABLE).contains(status), "unknown status " + status);
        Bench.check(status != TableServiceGeoReplicationStatus.LIVE || replication.getLastSyncTime() != null,
            "live without a time");
    }
}
