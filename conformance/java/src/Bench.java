import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.exception.HttpResponseException;
import com.azure.core.http.HttpHeaderName;
import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.policy.RetryOptions;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableClientBuilder;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableServiceException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** What a scenario works with: clients for the endpoint under test, tables of its own, and the checks they share. */
final class Bench {
    static final String ENDPOINT = System.getenv("TABLES_ENDPOINT").replaceAll("/$", "");
    static final String ACCOUNT = System.getenv("TABLES_ACCOUNT");

    private static final RetryOptions NO_RETRIES = new RetryOptions(new FixedDelayOptions(0, Duration.ofMillis(1)));
    private static final HttpHeaderName ERROR_CODE = HttpHeaderName.fromString("x-ms-error-code");
    private static final Pattern CODE = Pattern.compile("\"code\":\\s*\"(\\w+)\"");

    private static final Map<String, Integer> STATUS = Map.ofEntries(
        Map.entry("AuthenticationFailed", 403),
        Map.entry("AuthorizationFailure", 403),
        Map.entry("AuthorizationPermissionMismatch", 403),
        Map.entry("CommandsInBatchActOnDifferentPartitions", 400),
        Map.entry("EntityAlreadyExists", 409),
        Map.entry("EntityTooLarge", 400),
        Map.entry("InvalidDuplicateRow", 400),
        Map.entry("InvalidInput", 400),
        Map.entry("InvalidResourceName", 400),
        Map.entry("OutOfRangeInput", 400),
        Map.entry("PropertyValueTooLarge", 400),
        Map.entry("ResourceNotFound", 404),
        Map.entry("TableAlreadyExists", 409),
        Map.entry("TableNotFound", 404),
        Map.entry("TooManyProperties", 400),
        Map.entry("UpdateConditionNotSatisfied", 412));

    /** A check that did not hold. */
    static final class Failure extends RuntimeException {
        Failure(String message) {
            super(message);
        }
    }

    final TableServiceClient service = service(ENDPOINT, System.getenv("TABLES_KEY"));
    private final List<String> names = new ArrayList<>();

    static TableServiceClient service(String endpoint, String key) {
        return new TableServiceClientBuilder().endpoint(endpoint)
            .credential(new AzureNamedKeyCredential(ACCOUNT, key))
            .retryOptions(NO_RETRIES)
            .buildClient();
    }

    static TableServiceClient serviceWithSas(String sas) {
        return new TableServiceClientBuilder().endpoint(ENDPOINT).sasToken(sas).retryOptions(NO_RETRIES).buildClient();
    }

    static TableClient tableWithSas(String sas, String name) {
        return new TableClientBuilder().endpoint(ENDPOINT)
            .tableName(name)
            .sasToken(sas)
            .retryOptions(NO_RETRIES)
            .buildClient();
    }

    /** A table name nobody else uses; the table is removed after the scenario if it exists then. */
    String name(String prefix) {
        String name = prefix + UUID.randomUUID().toString().replace("-", "").substring(0, 16);
        names.add(name);
        return name;
    }

    String name() {
        return name("Java");
    }

    void clear() {
        for (String name : names) {
            try {
                service.deleteTable(name);
            } catch (RuntimeException ignored) {
                // The scenario has its result already.
            }
        }
    }

    /** A new table with the given rows in it. */
    TableClient table(TableEntity... rows) {
        TableClient table = service.createTable(name());
        for (TableEntity row : rows) {
            table.createEntity(row);
        }
        return table;
    }

    /** A row of partition "p" with properties given as name, value, name, value. */
    static TableEntity row(String rowKey, Object... properties) {
        return entity("p", rowKey, properties);
    }

    static TableEntity entity(String partitionKey, String rowKey, Object... properties) {
        TableEntity entity = new TableEntity(partitionKey, rowKey);
        for (int i = 0; i < properties.length; i += 2) {
            entity.addProperty((String) properties[i], properties[i + 1]);
        }
        return entity;
    }

    /** The properties of an entity without those of the system, in a form that can be compared. */
    static Map<String, Object> properties(TableEntity entity) {
        Map<String, Object> properties = new TreeMap<>();
        entity.getProperties().forEach((name, value) -> {
            if (!name.startsWith("odata.") && !name.endsWith("@odata.type") && !name.equals("Timestamp")) {
                properties.put(name, value instanceof byte[] ? ByteBuffer.wrap((byte[]) value) : value);
            }
        });
        return properties;
    }

    static List<TableEntity> query(TableClient table, String filter) {
        ListEntitiesOptions options = new ListEntitiesOptions().setFilter(filter);
        return table.listEntities(options, null, null).stream().collect(Collectors.toList());
    }

    /** The row keys which a filter selects, in the order of the reply. */
    static List<String> select(TableClient table, String filter) {
        return rowKeys(query(table, filter));
    }

    static List<String> rowKeys(List<TableEntity> rows) {
        return rows.stream().map(TableEntity::getRowKey).collect(Collectors.toList());
    }

    static String quote(String text) {
        return "'" + text.replace("'", "''") + "'";
    }

    static OffsetDateTime now() {
        return OffsetDateTime.now(ZoneOffset.UTC);
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new Failure(otherwise);
        }
    }

    static void equal(Object got, Object want) {
        check(Objects.equals(got, want), "expected " + want + ", got " + got);
    }

    @FunctionalInterface
    interface Request {
        void send() throws Exception;
    }

    /** Sends a request that must be refused with the code and the status that belongs to it. Returns the error. */
    static HttpResponseException expectError(String code, Request request) {
        HttpResponseException error = null;
        try {
            request.send();
        } catch (HttpResponseException refusal) {
            error = refusal;
        } catch (Exception | LinkageError other) {
            // A LinkageError is how the SDK reports an XML error where it expects JSON.
            throw new Failure("expected " + code + ", got " + other);
        }
        check(error != null, "expected " + code + ", but the request succeeded");
        // The error of a transaction has no response, hence no status.
        int status = error.getResponse() == null ? STATUS.get(code) : error.getResponse().getStatusCode();
        String got = code(error);
        check(code.equals(got) && status == STATUS.get(code), "expected " + code + ", got " + status + " " + got);
        return error;
    }

    /** The code as parsed by the SDK, or else from the header, or else (in errors of a listing) from the text. */
    private static String code(HttpResponseException error) {
        if (error instanceof TableServiceException) {
            TableServiceException parsed = (TableServiceException) error;
            if (parsed.getValue() != null && parsed.getValue().getErrorCode() != null) {
                return parsed.getValue().getErrorCode().toString();
            }
        }
        String header = error.getResponse() == null ? null : error.getResponse().getHeaderValue(ERROR_CODE);
        Matcher text = CODE.matcher(String.valueOf(error.getMessage()));
        return header != null ? header : text.find() ? text.group(1) : error.getMessage();
    }
}
