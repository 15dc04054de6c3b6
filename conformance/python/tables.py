"""Scenarios on tables themselves."""

from azure.core.exceptions import HttpResponseError

from endpoint import expect, keys, refused, service, table_client, temporary_table, unique_name
from report import same


def names(tables):
    return [table.name for table in tables]


def create_table_and_list():
    with temporary_table(unique_name("MixedCase")) as table:
        assert table.table_name in names(service().list_tables()), "the new table is not listed"


def create_table_twice():
    with temporary_table() as table:
        expect("TableAlreadyExists", table.create_table)
        expect("TableAlreadyExists", service().create_table, table.table_name.lower())
        service().create_table_if_not_exists(table.table_name)


def create_table_bad_names():
    for name in ["ab", "with-dash"]:
        # The SDK turns the two refusals it knows into a ValueError.
        refused((ValueError, HttpResponseError), service().create_table, name)


def delete_table_and_recreate():
    with temporary_table() as table:
        table.create_entity({"PartitionKey": "p", "RowKey": "r"})
        table.delete_table()
        table.create_table()
        same(keys(table.list_entities()), [])


def delete_table_missing():
    table = table_client(unique_name())
    table.delete_table()
    service().delete_table(table.table_name)
    expect("TableNotFound", lambda: list(table.list_entities()))


def list_tables_with_filter():
    stem = unique_name("Filter")
    with temporary_table(stem + "A"), temporary_table(stem + "B"), temporary_table(unique_name("Other")):
        found = service().query_tables("TableName eq @name", parameters={"name": stem + "B"})
        same(names(found), [stem + "B"])
        found = service().query_tables(f"TableName ge '{stem}' and TableName lt '{stem}{{'")
        same(names(found), [stem + "A", stem + "B"])


def list_tables_paged():
    stem = unique_name("Paged")
    with temporary_table(stem + "a"), temporary_table(stem + "b"), temporary_table(stem + "c"):
        pages = [names(page) for page in service().list_tables(results_per_page=2).by_page()]
        assert max(map(len, pages)) <= 2, f"a page has {max(map(len, pages))} tables"
        every = [name for page in pages for name in page]
        same(len(every), len(set(every)), "number of distinct names")
        same([name for name in every if name.startswith(stem)], [stem + "a", stem + "b", stem + "c"])


def table_name_any_case():
    with temporary_table(unique_name("AnyCase")) as table:
        table_client(table.table_name.upper()).create_entity({"PartitionKey": "p", "RowKey": "r", "N": 1})
        same(table_client(table.table_name.lower()).get_entity("p", "r")["N"], 1)
        same([name for name in names(service().list_tables()) if name.lower() == table.table_name.lower()],
             [table.table_name])
