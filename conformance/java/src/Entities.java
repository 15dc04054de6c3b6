import com.azure.core.exception.HttpResponseException;
import com.azure.core.http.HttpHeaderName;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

final class Entities {
    private static final TableEntityUpdateMode MERGE = TableEntityUpdateMode.MERGE;
    private static final TableEntityUpdateMode REPLACE = TableEntityUpdateMode.REPLACE;

    static void list(Map<String, Main.Scenario> scenarios) {
        scenarios.put("insert_and_get_all_types", Entities::insertAndGetAllTypes);
        scenarios.put("insert_conflict", Entities::insertConflict);
        scenarios.put("insert_null_property", Entities::insertNullProperty);
        scenarios.put("insert_empty_string_and_binary", Entities::insertEmptyStringAndBinary);
        scenarios.put("insert_unicode", Entities::insertUnicode);
        scenarios.put("insert_special_characters_in_keys", Entities::insertSpecialCharactersInKeys);
        scenarios.put("insert_empty_keys", Entities::insertEmptyKeys);
        scenarios.put("insert_missing_table", Entities::insertMissingTable);
        scenarios.put("get_missing_entity", Entities::getMissingEntity);
        scenarios.put("get_with_select", Entities::getWithSelect);
        scenarios.put("insert_special_doubles", Entities::insertSpecialDoubles);
        scenarios.put("insert_int64_extremes", Entities::insertInt64Extremes);
        scenarios.put("insert_dates_with_fractions", Entities::insertDatesWithFractions);
        scenarios.put("update_replace", Entities::updateReplace);
        scenarios.put("update_merge", Entities::updateMerge);
        scenarios.put("upsert_replace", Entities::upsertReplace);
        scenarios.put("upsert_merge", Entities::upsertMerge);
        scenarios.put("update_missing_entity", Entities::updateMissingEntity);
        scenarios.put("update_with_etag", Entities::updateWithETag);
        scenarios.put("update_with_stale_etag", Entities::updateWithStaleETag);
        scenarios.put("etag_race", Entities::etagRace);
        scenarios.put("delete_entity", Entities::deleteEntity);
        scenarios.put("delete_with_stale_etag", Entities::deleteWithStaleETag);
        scenarios.put("delete_missing_entity", Entities::deleteMissingEntity);
        scenarios.put("limit_property_value", Entities::limitPropertyValue);
        scenarios.put("limit_properties", Entities::limitProperties);
        scenarios.put("limit_entity_size", Entities::limitEntitySize);
    }

    /** Checks that one row has just these properties, given as name, value, name, value. */
    private static void expect(TableClient table, String rowKey, Object... properties) {
        Map<String, Object> got = Bench.properties(table.getEntity("p", rowKey));
        Map<String, Object> want = Bench.properties(Bench.row(rowKey, properties));
        Bench.equal(got.keySet(), want.keySet());
        want.forEach((name, value) -> Bench.check(value.equals(got.get(name)), name + ": expected "
            + value + " (" + value.getClass().getSimpleName() + "), got "
            + got.get(name) + " (" + got.get(name).getClass().getSimpleName() + ")"));
    }

    private static void roundTrip(Bench bench, Object... properties) {
        expect(bench.table(Bench.row("1", properties)), "1", properties);
    }

    private static void keysRoundTrip(Bench bench, String partitionKey, String rowKey) {
        TableClient table = bench.table(Bench.entity(partitionKey, rowKey, "Value", "first"));
        table.updateEntity(Bench.entity(partitionKey, rowKey, "Value", "second"), REPLACE);
        TableEntity entity = table.getEntity(partitionKey, rowKey);
        Bench.equal(List.of(entity.getPartitionKey(), entity.getRowKey()), List.of(partitionKey, rowKey));
        Bench.equal(entity.getProperty("Value"), "second");
        table.deleteEntity(partitionKey, rowKey);
        Bench.expectError("ResourceNotFound", () -> table.getEntity(partitionKey, rowKey));
    }

    /** An update with the ETag of an entity that was read; the rest of what was read is sent along, as the SDK does. */
    private static String updateRead(TableClient table, TableEntity read, TableEntityUpdateMode mode) {
        return table.updateEntityWithResponse(read, mode, true, null, null).getHeaders().getValue(HttpHeaderName.ETAG);
    }

    static void insertAndGetAllTypes(Bench bench) {
        roundTrip(bench,
            "AString", "text",
            "AnInt32", Integer.MIN_VALUE,
            "AnInt64", 1099511627776L,
            "ADouble", 0.1,
            "AWholeDouble", 5.0,
            "ABoolean", true,
            "ADateTime", OffsetDateTime.parse("2024-02-29T12:34:56.789Z"),
            "AGuid", UUID.fromString("c9da6455-213d-42c9-9a79-3e9149a57833"),
            "ABinary", new byte[] {0, 1, 127, -128, -1});
    }

    static void insertConflict(Bench bench) {
        TableClient table = bench.table(Bench.row("1", "Value", "first"));
        Bench.expectError("EntityAlreadyExists", () -> table.createEntity(Bench.row("1", "Value", "second")));
        expect(table, "1", "Value", "first");
    }

    static void insertNullProperty(Bench bench) {
        TableClient table = bench.table(Bench.row("1", "Nothing", null, "Something", 1));
        expect(table, "1", "Something", 1);
    }

    static void insertEmptyStringAndBinary(Bench bench) {
        roundTrip(bench, "Text", "", "Bytes", new byte[0]);
    }

    static void insertUnicode(Bench bench) {
        roundTrip(bench, "Größe名", "Zażółć 日本語 😀");
        keysRoundTrip(bench, "Ключ 日本", "é😀𝄞");
    }

    static void insertSpecialCharactersInKeys(Bench bench) {
        keysRoundTrip(bench, "it's 100% a+b & c:d", "''@home, %27 \"x\"=1;");
    }

    static void insertEmptyKeys(Bench bench) {
        keysRoundTrip(bench, "", "");
    }

    static void insertMissingTable(Bench bench) {
        TableClient table = bench.service.getTableClient(bench.name());
        Bench.expectError("TableNotFound", () -> table.createEntity(Bench.row("1")));
    }

    static void getMissingEntity(Bench bench) {
        TableClient table = bench.table(Bench.row("1"));
        Bench.expectError("ResourceNotFound", () -> table.getEntity("p", "2"));
    }

    static void getWithSelect(Bench bench) {
        TableClient table = bench.table(Bench.row("1", "A", 1, "B", 2, "C", 3));
        TableEntity entity = table.getEntityWithResponse("p", "1", List.of("A", "C"), null, null).getValue();
        Bench.equal(Bench.properties(entity), Map.of("A", 1, "C", 3));
    }

    static void insertSpecialDoubles(Bench bench) {
        // The SDK writes these as strings and leaves it to the caller to name the type.
        roundTrip(bench,
            "NotANumber", Double.NaN, "NotANumber@odata.type", "Edm.Double",
            "Positive", Double.POSITIVE_INFINITY, "Positive@odata.type", "Edm.Double",
            "Negative", Double.NEGATIVE_INFINITY, "Negative@odata.type", "Edm.Double");
    }

    static void insertInt64Extremes(Bench bench) {
        roundTrip(bench, "Smallest", Long.MIN_VALUE, "Largest", Long.MAX_VALUE);
    }

    static void insertDatesWithFractions(Bench bench) {
        roundTrip(bench,
            "Fraction", OffsetDateTime.parse("2024-02-29T12:34:56.7891234Z"),
            "First", OffsetDateTime.parse("1601-01-01T00:00:00Z"),
            "Last", OffsetDateTime.parse("9999-12-31T23:59:59.9999999Z"));
    }

    static void updateReplace(Bench bench) {
        TableClient table = bench.table(Bench.row("1", "A", 1, "B", 2));
        table.updateEntity(Bench.row("1", "B", 3), REPLACE);
        expect(table, "1", "B", 3);
    }

    static void updateMerge(Bench bench) {
        TableClient table = bench.table(Bench.row("1", "A", 1, "B", 2));
        table.updateEntity(Bench.row("1", "B", "three"), MERGE);
        expect(table, "1", "A", 1, "B", "three");
    }

    static void upsertReplace(Bench bench) {
        TableClient table = bench.table();
        table.upsertEntityWithResponse(Bench.row("1", "A", 1), REPLACE, null, null);
        expect(table, "1", "A", 1);
        table.upsertEntityWithResponse(Bench.row("1", "B", 2), REPLACE, null, null);
        expect(table, "1", "B", 2);
    }

    static void upsertMerge(Bench bench) {
        TableClient table = bench.table();
        table.upsertEntityWithResponse(Bench.row("1", "A", 1), MERGE, null, null);
        table.upsertEntityWithResponse(Bench.row("1", "B", 2), MERGE, null, null);
        expect(table, "1", "A", 1, "B", 2);
    }

    static void updateMissingEntity(Bench bench) {
        TableClient table = bench.table();
        for (TableEntityUpdateMode mode : List.of(REPLACE, MERGE)) {
            Bench.expectError("ResourceNotFound", () -> table.updateEntity(Bench.row("1"), mode));
        }
        Bench.expectError("ResourceNotFound", () -> table.getEntity("p", "1"));
    }

    static void updateWithETag(Bench bench) {
        TableClient table = bench.table(Bench.row("1", "A", 1, "Long", 2L));
        for (TableEntityUpdateMode mode : List.of(REPLACE, MERGE)) {
            TableEntity read = table.getEntity("p", "1");
            String header = updateRead(table, read, mode);
            String updated = table.getEntity("p", "1").getETag();
            Bench.check(!updated.equals(read.getETag()), "the ETag is unchanged");
            // The SDK takes the closing quote off the header.
            Bench.equal(header.replaceAll("\"$", "") + "\"", updated);
        }
        expect(table, "1", "A", 1, "Long", 2L);
    }

    static void updateWithStaleETag(Bench bench) {
        TableClient table = bench.table(Bench.row("1", "A", 1));
        TableEntity stale = table.getEntity("p", "1");
        table.updateEntity(Bench.row("1", "A", 2));
        for (TableEntityUpdateMode mode : List.of(REPLACE, MERGE)) {
            Bench.expectError("UpdateConditionNotSatisfied", () -> updateRead(table, stale, mode));
        }
        expect(table, "1", "A", 2);
    }

    static void etagRace(Bench bench) throws InterruptedException {
        TableClient table = bench.table(Bench.row("1", "Winner", -1));
        String etag = table.getEntity("p", "1").getETag();
        ExecutorService threads = Executors.newFixedThreadPool(20);
        List<Future<String>> results = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            TableEntity entity = Bench.row("1", "Winner", i, "odata.etag", etag);
            results.add(threads.submit(() -> updateRead(table, entity, REPLACE)));
        }
        List<Integer> winners = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            try {
                results.get(i).get();
                winners.add(i);
            } catch (ExecutionException refusal) {
                Bench.expectError("UpdateConditionNotSatisfied", () -> {
                    throw (HttpResponseException) refusal.getCause();
                });
            }
        }
        threads.shutdown();
        Bench.check(winners.size() == 1, winners.size() + " updates won");
        expect(table, "1", "Winner", winners.get(0));
    }

    static void deleteEntity(Bench bench) {
        TableClient table = bench.table(Bench.row("1"));
        table.deleteEntity("p", "1");
        Bench.expectError("ResourceNotFound", () -> table.getEntity("p", "1"));
    }

    static void deleteWithStaleETag(Bench bench) {
        TableClient table = bench.table(Bench.row("1", "A", 1));
        TableEntity stale = table.getEntity("p", "1");
        table.updateEntity(Bench.row("1", "A", 2));
        Bench.expectError("UpdateConditionNotSatisfied", () -> table.deleteEntityWithResponse(stale, true, null, null));
        expect(table, "1", "A", 2);
    }

    static void deleteMissingEntity(Bench bench) {
        Bench.equal(bench.table().deleteEntityWithResponse(Bench.row("1"), false, null, null).getStatusCode(), 404);
    }

    static void limitPropertyValue(Bench bench) {
        TableClient table = bench.table(Bench.row("fits", "Text", "é".repeat(32_768)));
        TableEntity tooLong = Bench.row("too long", "Text", "é".repeat(32_769));
        Bench.expectError("PropertyValueTooLarge", () -> table.createEntity(tooLong));
    }

    /** A row with so many properties of one value. */
    private static TableEntity filled(String rowKey, int count, Object value) {
        TableEntity row = Bench.row(rowKey);
        for (int i = 0; i < count; i++) {
            row.addProperty("P" + i, value);
        }
        return row;
    }

    static void limitProperties(Bench bench) {
        TableClient table = bench.table(filled("fits", 252, 1));
        Bench.expectError("TooManyProperties", () -> table.createEntity(filled("too many", 253, 1)));
    }

    static void limitEntitySize(Bench bench) {
        // A property of 32,768 characters counts 64 KiB, whatever the length of its JSON.
        String text = "x".repeat(32_768);
        TableClient table = bench.table(filled("fits", 15, text));
        Bench.expectError("EntityTooLarge", () -> table.createEntity(filled("too large", 16, text)));
    }
}
