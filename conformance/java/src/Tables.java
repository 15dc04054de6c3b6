import com.azure.core.http.rest.PagedResponse;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.ListTablesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableItem;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

final class Tables {
    static void list(Map<String, Main.Scenario> scenarios) {
        scenarios.put("create_table_and_list", Tables::createTableAndList);
        scenarios.put("create_table_twice", Tables::createTableTwice);
        scenarios.put("create_table_bad_names", Tables::createTableBadNames);
        scenarios.put("delete_table_and_recreate", Tables::deleteTableAndRecreate);
        scenarios.put("delete_table_missing", Tables::deleteTableMissing);
        scenarios.put("list_tables_with_filter", Tables::listTablesWithFilter);
        scenarios.put("list_tables_paged", Tables::listTablesPaged);
        scenarios.put("table_name_any_case", Tables::tableNameAnyCase);
    }

    private static List<String> listed(Bench bench, String filter) {
        ListTablesOptions options = new ListTablesOptions().setFilter(filter);
        return bench.service.listTables(options, null, null)
            .stream()
            .map(TableItem::getName)
            .collect(Collectors.toList());
    }

    private static List<String> createPrefixed(Bench bench, String prefix, String suffixes) {
        List<String> names = new ArrayList<>();
        for (String suffix : suffixes.split("")) {
            names.add(bench.name(prefix + suffix));
            bench.service.createTable(names.get(names.size() - 1));
        }
        return names;
    }

    private static String prefixFilter(String prefix) {
        return "TableName ge " + Bench.quote(prefix) + " and TableName lt " + Bench.quote(prefix + "{");
    }

    static void createTableAndList(Bench bench) {
        String name = bench.name("MixedCase");
        bench.service.createTable(name);
        Bench.check(listed(bench, null).contains(name), name + " is not listed");
    }

    static void createTableTwice(Bench bench) {
        String name = bench.name();
        bench.service.createTable(name);
        Bench.expectError("TableAlreadyExists", () -> bench.service.createTable(name));
        Bench.equal(bench.service.createTableIfNotExistsWithResponse(name, null, null).getStatusCode(), 409);
    }

    static void createTableBadNames(Bench bench) {
        Bench.expectError("OutOfRangeInput", () -> bench.service.createTable("ab"));
        Bench.expectError("InvalidResourceName", () -> bench.service.createTable("with-dash"));
    }

    static void deleteTableAndRecreate(Bench bench) {
        TableClient table = bench.table(Bench.row("1"));
        table.deleteTable();
        table.createTable();
        Bench.equal(Bench.select(table, null), List.of());
    }

    static void deleteTableMissing(Bench bench) {
        Bench.equal(bench.service.deleteTableWithResponse(bench.name(), null, null).getStatusCode(), 404);
    }

    static void listTablesWithFilter(Bench bench) {
        String prefix = bench.name("Filter");
        List<String> names = createPrefixed(bench, prefix, "abc");
        Bench.equal(listed(bench, "TableName eq " + Bench.quote(names.get(1))), names.subList(1, 2));
        Bench.equal(listed(bench, prefixFilter(prefix)), names);
        Bench.equal(listed(bench, "TableName eq " + Bench.quote(bench.name())), List.of());
    }

    static void listTablesPaged(Bench bench) {
        String prefix = bench.name("Paged");
        List<String> names = createPrefixed(bench, prefix, "abcdefg");
        ListTablesOptions options = new ListTablesOptions().setFilter(prefixFilter(prefix)).setTop(3);
        List<String> listed = new ArrayList<>();
        for (PagedResponse<TableItem> page : bench.service.listTables(options, null, null).iterableByPage()) {
            Bench.check(page.getValue().size() <= 3, "a page of " + page.getValue().size());
            page.getValue().forEach(item -> listed.add(item.getName()));
        }
        Bench.equal(listed, names);
    }

    static void tableNameAnyCase(Bench bench) {
        String name = bench.name("MixedCase");
        bench.service.createTable(name);
        bench.service.getTableClient(name.toUpperCase(Locale.ROOT)).createEntity(Bench.row("1", "Value", "kept"));
        TableEntity entity = bench.service.getTableClient(name.toLowerCase(Locale.ROOT)).getEntity("p", "1");
        Bench.equal(entity.getProperty("Value"), "kept");
    }
}
