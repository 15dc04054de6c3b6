import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionResponse;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.data.tables.models.TableTransactionFailedException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

final class Transactions {
    static void list(Map<String, Main.Scenario> scenarios) {
        scenarios.put("transaction_all_operations", Transactions::transactionAllOperations);
        scenarios.put("transaction_100_inserts", Transactions::transaction100Inserts);
        scenarios.put("transaction_101_operations", Transactions::transaction101Operations);
        scenarios.put("transaction_conflict_rolls_back", Transactions::transactionConflictRollsBack);
        scenarios.put("transaction_stale_etag_rolls_back", Transactions::transactionStaleETagRollsBack);
        scenarios.put("transaction_two_partitions", Transactions::transactionTwoPartitions);
        scenarios.put("transaction_duplicate_row", Transactions::transactionDuplicateRow);
        scenarios.put("transaction_missing_table", Transactions::transactionMissingTable);
    }

    private static TableTransactionAction create(String rowKey, Object... properties) {
        return new TableTransactionAction(TableTransactionActionType.CREATE, Bench.row(rowKey, properties));
    }

    private static List<TableTransactionAction> creates(int count) {
        return IntStream.range(0, count).mapToObj(i -> create(String.format("%03d", i))).collect(Collectors.toList());
    }

    private static int failedIndex(String code, TableClient table, TableTransactionAction... actions) {
        return ((TableTransactionFailedException) Bench.expectError(code,
            () -> table.submitTransaction(List.of(actions)))).getFailedTransactionActionIndex();
    }

    private static TableTransactionAction fresh(TableTransactionActionType type, String rowKey) {
        return new TableTransactionAction(type, Bench.row(rowKey, "New", 2));
    }

    static void transactionAllOperations(Bench bench) {
        TableClient table = bench.table();
        for (String rowKey : List.of("deleted", "merged", "replaced", "upsert merged", "upsert replaced")) {
            table.createEntity(Bench.row(rowKey, "Old", 1));
        }
        TableEntity merged = table.getEntity("p", "merged").addProperty("New", 2);
        List<TableTransactionActionResponse> replies = table.submitTransaction(List.of(
            fresh(TableTransactionActionType.CREATE, "created"),
            fresh(TableTransactionActionType.UPDATE_REPLACE, "replaced"),
            new TableTransactionAction(TableTransactionActionType.UPDATE_MERGE, merged, true),
            fresh(TableTransactionActionType.UPSERT_REPLACE, "upsert replaced"),
            fresh(TableTransactionActionType.UPSERT_MERGE, "upsert merged"),
            fresh(TableTransactionActionType.UPSERT_MERGE, "upsert created"),
            fresh(TableTransactionActionType.DELETE, "deleted"))).getTransactionActionResponses();
        replies.forEach(reply -> Bench.equal(reply.getStatusCode(), 204));
        Bench.equal(replies.size(), 7);

        Map<String, List<Boolean>> hasOldAndNew = new TreeMap<>();
        for (TableEntity entity : Bench.query(table, null)) {
            Map<String, Object> properties = entity.getProperties();
            hasOldAndNew.put(entity.getRowKey(), List.of(properties.containsKey("Old"), properties.containsKey("New")));
        }
        Bench.equal(hasOldAndNew, Map.of(
            "created", List.of(false, true),
            "merged", List.of(true, true),
            "replaced", List.of(false, true),
            "upsert created", List.of(false, true),
            "upsert merged", List.of(true, true),
            "upsert replaced", List.of(false, true)));
    }

    static void transaction100Inserts(Bench bench) {
        TableClient table = bench.table();
        Bench.equal(table.submitTransaction(creates(100)).getTransactionActionResponses().size(), 100);
        Bench.equal(Bench.select(table, null).size(), 100);
    }

    static void transaction101Operations(Bench bench) {
        TableClient table = bench.table();
        Bench.expectError("InvalidInput", () -> table.submitTransaction(creates(101)));
        Bench.equal(Bench.select(table, null), List.of());
    }

    static void transactionConflictRollsBack(Bench bench) {
        TableClient table = bench.table(Bench.row("2", "Value", "first"));
        int index = failedIndex("EntityAlreadyExists", table, create("1"), create("2", "Value", "second"), create("3"));
        Bench.equal(index, 1);
        Bench.equal(Bench.select(table, null), List.of("2"));
        Bench.equal(table.getEntity("p", "2").getProperty("Value"), "first");
    }

    static void transactionStaleETagRollsBack(Bench bench) {
        TableClient table = bench.table(Bench.row("1", "A", 1));
        TableEntity stale = table.getEntity("p", "1");
        table.updateEntity(Bench.row("1", "A", 2));
        TableTransactionAction update
            = new TableTransactionAction(TableTransactionActionType.UPDATE_REPLACE, stale, true);
        Bench.equal(failedIndex("UpdateConditionNotSatisfied", table, create("0"), update), 1);
        Bench.equal(Bench.select(table, null), List.of("1"));
        Bench.equal(table.getEntity("p", "1").getProperty("A"), 2);
    }

    static void transactionTwoPartitions(Bench bench) {
        TableClient table = bench.table();
        TableTransactionAction other
            = new TableTransactionAction(TableTransactionActionType.CREATE, Bench.entity("q", "2"));
        Bench.expectError("CommandsInBatchActOnDifferentPartitions",
            () -> table.submitTransaction(List.of(create("1"), other)));
        Bench.equal(Bench.select(table, null), List.of());
    }

    static void transactionDuplicateRow(Bench bench) {
        TableClient table = bench.table();
        TableTransactionAction again = fresh(TableTransactionActionType.UPSERT_MERGE, "1");
        Bench.expectError("InvalidDuplicateRow",
            () -> table.submitTransaction(List.of(create("1"), create("2"), again)));
        Bench.equal(Bench.select(table, null), List.of());
    }

    static void transactionMissingTable(Bench bench) {
        TableClient table = bench.service.getTableClient(bench.name());
        Bench.expectError("TableNotFound", () -> table.submitTransaction(List.of(create("1"), create("2"))));
    }
}
