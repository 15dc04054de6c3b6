import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.models.TableAccessPolicy;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableSignedIdentifier;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.data.tables.sas.TableAccountSasPermission;
import com.azure.data.tables.sas.TableAccountSasResourceType;
import com.azure.data.tables.sas.TableAccountSasService;
import com.azure.data.tables.sas.TableAccountSasSignatureValues;
import com.azure.data.tables.sas.TableSasPermission;
import com.azure.data.tables.sas.TableSasSignatureValues;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

final class Access {
    static void list(Map<String, Main.Scenario> scenarios) {
        scenarios.put("sas_table_read_only", Access::sasTableReadOnly);
        scenarios.put("sas_table_key_range", Access::sasTableKeyRange);
        scenarios.put("sas_table_policy_and_revocation", Access::sasTablePolicyAndRevocation);
        scenarios.put("sas_account", Access::sasAccount);
        scenarios.put("sas_expired", Access::sasExpired);
        scenarios.put("access_policies_round_trip", Access::accessPoliciesRoundTrip);
        scenarios.put("wrong_key", Access::wrongKey);
    }

    private static TableClient with(TableSasSignatureValues values, TableClient table) {
        return Bench.tableWithSas(table.generateSas(values), table.getTableName());
    }

    private static TableSasSignatureValues permit(String permissions, OffsetDateTime expiry) {
        return new TableSasSignatureValues(expiry, TableSasPermission.parse(permissions));
    }

    static void sasTableReadOnly(Bench bench) {
        TableClient table = bench.table(Bench.row("1", "A", 1));
        TableClient reader = with(permit("r", Bench.now().plusHours(1)), table);
        Bench.equal(reader.getEntity("p", "1").getProperty("A"), 1);
        Bench.equal(Bench.select(reader, null), List.of("1"));
        Bench.expectError("AuthorizationPermissionMismatch", () -> reader.createEntity(Bench.row("2")));
        Bench.expectError("AuthorizationPermissionMismatch", () -> reader.upsertEntity(Bench.row("2")));
        Bench.expectError("AuthorizationPermissionMismatch", () -> reader.deleteEntity("p", "1"));
        Bench.equal(Bench.select(table, null), List.of("1"));
    }

    static void sasTableKeyRange(Bench bench) {
        TableClient table = bench.table();
        for (String partitionKey : "abcde".split("")) {
            table.createEntity(Bench.entity(partitionKey, "5"));
        }
        TableClient ranged = with(permit("ra", Bench.now().plusHours(1)).setStartPartitionKey("b")
            .setStartRowKey("6")
            .setEndPartitionKey("d")
            .setEndRowKey("5"), table);
        ranged.createEntity(Bench.entity("b", "6"));
        ranged.createEntity(Bench.entity("c", "0"));
        for (String keys : List.of("b4", "d6", "a7", "e1")) {
            TableEntity outside = Bench.entity(keys.substring(0, 1), keys.substring(1));
            Bench.expectError("AuthorizationFailure", () -> ranged.createEntity(outside));
        }
        List<String> seen = Bench.query(ranged, null)
            .stream()
            .map(entity -> entity.getPartitionKey() + entity.getRowKey())
            .collect(Collectors.toList());
        Bench.equal(seen, List.of("b6", "c0", "c5", "d5"));
    }

    static void sasTablePolicyAndRevocation(Bench bench) {
        TableClient table = bench.table(Bench.row("1"));
        table.setAccessPolicies(List.of(new TableSignedIdentifier("readers").setAccessPolicy(
            new TableAccessPolicy().setStartsOn(Bench.now().minusHours(1))
                .setExpiresOn(Bench.now().plusHours(1))
                .setPermissions("r"))));
        TableClient reader = with(new TableSasSignatureValues("readers"), table);
        Bench.equal(Bench.select(reader, null), List.of("1"));
        Bench.expectError("AuthorizationPermissionMismatch", () -> reader.createEntity(Bench.row("2")));
        table.setAccessPolicies(List.of());
        Bench.expectError("AuthenticationFailed", () -> Bench.select(reader, null));
    }

    static void sasAccount(Bench bench) {
        String sas = bench.service.generateAccountSas(new TableAccountSasSignatureValues(Bench.now().plusHours(1),
            TableAccountSasPermission.parse("rlac"),
            new TableAccountSasService().setTableAccess(true),
            TableAccountSasResourceType.parse("sco")));
        TableClient table = Bench.serviceWithSas(sas).createTable(bench.name());
        table.createEntity(Bench.row("1"));
        table.submitTransaction(List.of(new TableTransactionAction(TableTransactionActionType.CREATE, Bench.row("2"))));
        Bench.equal(Bench.select(table, null), List.of("1", "2"));
        Bench.expectError("AuthorizationPermissionMismatch", () -> table.deleteEntity("p", "1"));
    }

    static void sasExpired(Bench bench) {
        TableClient table = bench.table(Bench.row("1"));
        TableClient late = with(permit("r", Bench.now().minusHours(1)), table);
        Bench.expectError("AuthenticationFailed", () -> Bench.select(late, null));
    }

    private static List<String> policies(TableClient table) {
        List<TableSignedIdentifier> identifiers = table.getAccessPolicies().getIdentifiers();
        return identifiers == null ? List.of() : identifiers.stream().map(identifier -> {
            TableAccessPolicy policy = identifier.getAccessPolicy();
            return String.join("|", identifier.getId(), String.valueOf(policy.getStartsOn()),
                String.valueOf(policy.getExpiresOn()), policy.getPermissions());
        }).collect(Collectors.toList());
    }

    static void accessPoliciesRoundTrip(Bench bench) {
        TableClient table = bench.table();
        Bench.equal(policies(table), List.of());
        table.setAccessPolicies(List.of(
            new TableSignedIdentifier("all").setAccessPolicy(
                new TableAccessPolicy().setStartsOn(OffsetDateTime.parse("2024-01-02T03:04:05Z"))
                    .setExpiresOn(OffsetDateTime.parse("2034-01-02T03:04:05Z"))
                    .setPermissions("raud")),
            new TableSignedIdentifier("no dates").setAccessPolicy(new TableAccessPolicy().setPermissions("r"))));
        Bench.equal(policies(table),
            List.of("all|2024-01-02T03:04:05Z|2034-01-02T03:04:05Z|raud", "no dates|null|null|r"));
        table.setAccessPolicies(List.of());
        Bench.equal(policies(table), List.of());
    }

    static void wrongKey(Bench bench) {
        TableClient table = bench.table(Bench.row("1"));
        String key = Base64.getEncoder().encodeToString("wrong".repeat(13).getBytes());
        TableServiceClient intruder = Bench.service(Bench.ENDPOINT, key);
        Bench.expectError("AuthenticationFailed", () -> intruder.listTables().forEach(item -> { }));
        Bench.expectError("AuthenticationFailed", () -> intruder.createTable(bench.name()));
        Bench.expectError("AuthenticationFailed", () -> intruder.deleteTable(table.getTableName()));
        Bench.equal(Bench.select(table, null), List.of("1"));
    }
}
