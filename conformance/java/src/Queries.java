import com.azure.core.http.rest.PagedResponse;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

final class Queries {
    static void list(Map<String, Main.Scenario> scenarios) {
        scenarios.put("query_all_in_key_order", Queries::queryAllInKeyOrder);
        scenarios.put("query_paging_2500", Queries::queryPaging2500);
        scenarios.put("query_page_size_and_resume", Queries::queryPageSizeAndResume);
        scenarios.put("query_filter_partition", Queries::queryFilterPartition);
        scenarios.put("query_filter_row_range", Queries::queryFilterRowRange);
        scenarios.put("query_filter_or_of_rows", Queries::queryFilterOrOfRows);
        scenarios.put("query_filter_each_type", Queries::queryFilterEachType);
        scenarios.put("query_filter_not_and_or", Queries::queryFilterNotAndOr);
        scenarios.put("query_filter_quotes", Queries::queryFilterQuotes);
        scenarios.put("query_filter_missing_property", Queries::queryFilterMissingProperty);
        scenarios.put("query_filter_bad_syntax", Queries::queryFilterBadSyntax);
        scenarios.put("query_select_missing_property", Queries::querySelectMissingProperty);
        scenarios.put("query_empty_result", Queries::queryEmptyResult);
    }

    private static void insertMany(TableClient table, String partitionKey, int count) {
        for (int start = 0; start < count; start += 100) {
            table.submitTransaction(IntStream.range(start, Math.min(start + 100, count))
                .mapToObj(i -> Bench.entity(partitionKey, String.format("%05d", i)))
                .map(entity -> new TableTransactionAction(TableTransactionActionType.CREATE, entity))
                .collect(Collectors.toList()));
        }
    }

    /** Checks which rows a filter selects and names the filter if they are others. */
    private static void expect(TableClient table, String filter, String... rowKeys) {
        List<String> got = Bench.select(table, filter);
        Bench.check(got.equals(List.of(rowKeys)), filter + ": expected " + List.of(rowKeys) + ", got " + got);
    }

    private static TableClient letters(Bench bench) {
        TableClient table = bench.table(Bench.entity("q", "c"));
        for (String letter : "abcde".split("")) {
            table.createEntity(Bench.row(letter));
        }
        return table;
    }

    static void queryAllInKeyOrder(Bench bench) {
        List<List<String>> keys = new ArrayList<>();
        for (String partitionKey : List.of("", "10", "9", "A", "Z", "a", "b", "z", "é")) {
            for (String rowKey : List.of("1", "10", "2", "B", "a")) {
                keys.add(List.of(partitionKey, rowKey));
            }
        }
        List<List<String>> shuffled = new ArrayList<>(keys);
        Collections.shuffle(shuffled);
        TableClient table = bench.table();
        shuffled.forEach(key -> table.createEntity(Bench.entity(key.get(0), key.get(1))));
        Bench.equal(Bench.query(table, null)
            .stream()
            .map(entity -> List.of(entity.getPartitionKey(), entity.getRowKey()))
            .collect(Collectors.toList()), keys);
    }

    static void queryPaging2500(Bench bench) {
        TableClient table = bench.table();
        for (String partitionKey : "abcde".split("")) {
            insertMany(table, partitionKey, 500);
        }
        int count = 0;
        Set<String> seen = new HashSet<>();
        for (PagedResponse<TableEntity> page : table.listEntities().iterableByPage()) {
            Bench.check(page.getValue().size() <= 1000, "a page of " + page.getValue().size());
            count += page.getValue().size();
            page.getValue().forEach(entity -> seen.add(entity.getPartitionKey() + "/" + entity.getRowKey()));
        }
        Bench.equal(count, 2500);
        Bench.equal(seen.size(), 2500);
    }

    static void queryPageSizeAndResume(Bench bench) {
        TableClient table = bench.table();
        insertMany(table, "p", 25);
        ListEntitiesOptions options = new ListEntitiesOptions().setTop(10);
        PagedResponse<TableEntity> first = table.listEntities(options, null, null).iterableByPage().iterator().next();
        Bench.equal(first.getValue().size(), 10);
        List<TableEntity> rows = new ArrayList<>(first.getValue());
        TableClient other = bench.service.getTableClient(table.getTableName());
        for (PagedResponse<TableEntity> page
            : other.listEntities(options, null, null).iterableByPage(first.getContinuationToken())) {
            Bench.check(page.getValue().size() <= 10, "a page of " + page.getValue().size());
            rows.addAll(page.getValue());
        }
        Bench.equal(Bench.rowKeys(rows),
            IntStream.range(0, 25).mapToObj(i -> String.format("%05d", i)).collect(Collectors.toList()));
    }

    static void queryFilterPartition(Bench bench) {
        TableClient table = bench.table(Bench.row("1"), Bench.row("2"), Bench.entity("q", "3"));
        expect(table, "PartitionKey eq 'p'", "1", "2");
    }

    static void queryFilterRowRange(Bench bench) {
        TableClient table = letters(bench);
        expect(table, "PartitionKey eq 'p' and RowKey ge 'b' and RowKey lt 'e'", "b", "c", "d");
        expect(table, "PartitionKey eq 'p' and RowKey gt 'b' and RowKey le 'e'", "c", "d", "e");
    }

    static void queryFilterOrOfRows(Bench bench) {
        String rows = "RowKey eq 'e' or RowKey eq 'a' or RowKey eq 'c' or RowKey eq 'x'";
        expect(letters(bench), "PartitionKey eq 'p' and (" + rows + ")", "a", "c", "e");
    }

    private static String guid(int digit) {
        return "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx".replace("x", String.valueOf(digit));
    }

    static void queryFilterEachType(Bench bench) {
        TableClient table = bench.table();
        for (int n = 1; n <= 3; n++) {
            table.createEntity(Bench.row(String.valueOf(n),
                "AnInt32", n,
                "AnInt64", n + 1099511627776L,
                "ADouble", n + 0.5,
                "ABoolean", n > 2,
                "ADateTime", OffsetDateTime.parse("2024-01-0" + n + "T01:02:03.456Z"),
                "AGuid", UUID.fromString(guid(n)),
                "ABinary", new byte[] {(byte) n, -1},
                "AString", "s" + n));
        }
        Map.of(
            "AnInt32", "2",
            "AnInt64", "1099511627778L",
            "ADouble", "2.5",
            "ADateTime", "datetime'2024-01-02T01:02:03.456Z'",
            "AGuid", "guid'" + guid(2) + "'",
            "ABinary", "X'02ff'",
            "AString", "'s2'").forEach((name, literal) -> {
                expect(table, name + " eq " + literal, "2");
                expect(table, name + " gt " + literal, "3");
                expect(table, name + " le " + literal, "1", "2");
            });
        expect(table, "ABoolean eq true", "3");
        expect(table, "ABoolean gt false", "3");
    }

    static void queryFilterNotAndOr(Bench bench) {
        TableClient table = bench.table(
            Bench.row("1", "A", 1, "B", 1),
            Bench.row("2", "A", 1, "B", 2),
            Bench.row("3", "A", 2, "B", 1),
            Bench.row("4", "A", 2, "B", 2));
        expect(table, "not (A eq 1)", "3", "4");
        expect(table, "A eq 1 or A eq 2 and B eq 2", "1", "2", "4");
        expect(table, "(A eq 1 or A eq 2) and B eq 2", "2", "4");
        expect(table, "not (A eq 1 and B eq 1) and not (A eq 2 and B eq 2)", "2", "3");
    }

    static void queryFilterQuotes(Bench bench) {
        List<String> names = List.of("O'Brien", "O''Brien", "OBrien", "' or RowKey ne '");
        TableClient table = bench.table();
        for (String name : names) {
            table.createEntity(Bench.row(String.valueOf(names.indexOf(name)), "Name", name));
        }
        for (String name : names) {
            expect(table, "Name eq " + Bench.quote(name), String.valueOf(names.indexOf(name)));
        }
    }

    static void queryFilterMissingProperty(Bench bench) {
        TableClient table = bench.table(Bench.row("1", "A", 1), Bench.row("2", "A", 2), Bench.row("3", "B", 1));
        expect(table, "A eq 1", "1");
        expect(table, "A ne 1", "2");
        expect(table, "A lt 5", "1", "2");
    }

    static void queryFilterBadSyntax(Bench bench) {
        TableClient table = bench.table(Bench.row("1"));
        for (String filter : List.of("aaa bbb ccc", "PartitionKey eq 'open", "(A eq 1")) {
            Bench.expectError("InvalidInput", () -> Bench.query(table, filter));
        }
    }

    static void querySelectMissingProperty(Bench bench) {
        TableClient table = bench.table(Bench.row("1", "A", 1), Bench.row("2", "A", 2));
        ListEntitiesOptions options = new ListEntitiesOptions().setSelect(List.of("RowKey", "Nowhere"));
        List<TableEntity> rows = table.listEntities(options, null, null).stream().collect(Collectors.toList());
        Bench.equal(Bench.rowKeys(rows), List.of("1", "2"));
        for (TableEntity row : rows) {
            Bench.check(row.getProperty("Nowhere") == null, "got " + row.getProperties());
            Bench.check(row.getProperty("A") == null, "got " + row.getProperties());
        }
    }

    static void queryEmptyResult(Bench bench) {
        TableClient table = bench.table();
        Bench.equal(Bench.select(table, null), List.of());
        table.createEntity(Bench.row("1"));
        expect(table, "PartitionKey eq 'p' and RowKey eq '2'");
    }
}
