package main

import (
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var tables = []scenario{
	{"create_table_and_list", createTableAndList},
	{"create_table_twice", createTableTwice},
	{"create_table_bad_names", createTableBadNames},
	{"delete_table_and_recreate", deleteTableAndRecreate},
	{"delete_table_missing", deleteTableMissing},
	{"list_tables_with_filter", listTablesWithFilter},
	{"list_tables_paged", listTablesPaged},
	{"table_name_any_case", tableNameAnyCase},
}

func (b *bench) create(name string) error {
	_, err := b.service.CreateTable(b.ctx, name, nil)
	return err
}

func (b *bench) listPages(options aztables.ListTablesOptions) ([][]string, error) {
	var pages [][]string
	for pager := b.service.NewListTablesPager(&options); pager.More(); {
		reply, err := pager.NextPage(b.ctx)
		if err != nil {
			return nil, err
		}
		page := []string{}
		for _, properties := range reply.Tables {
			page = append(page, *properties.Name)
		}
		pages = append(pages, page)
	}
	return pages, nil
}

// prefixed creates one table for each suffix and returns their names and the filter that selects just them.
func (b *bench) prefixed(prefix, suffixes string) (names []string, filter string) {
	prefix = b.name(prefix)
	for _, suffix := range strings.Split(suffixes, "") {
		names = append(names, b.name(prefix+suffix))
		succeed(b.create(names[len(names)-1]))
	}
	return names, "TableName ge " + quote(prefix) + " and TableName lt " + quote(prefix+"{")
}

func createTableAndList(b *bench) {
	name := b.name("MixedCase")
	reply := must(b.service.CreateTable(b.ctx, name, nil))
	equal(*reply.TableName, name)
	listed := flat(must(b.listPages(aztables.ListTablesOptions{})))
	check(slices.Contains(listed, name), "%s is not listed", name)
}

// aztables has no create-if-not-exists.
func createTableTwice(b *bench) {
	name := b.name("Go")
	succeed(b.create(name))
	refused("TableAlreadyExists", b.create(name))
}

func createTableBadNames(b *bench) {
	refused("OutOfRangeInput", b.create("ab"))
	refused("InvalidResourceName", b.create("with-dash"))
}

func deleteTableAndRecreate(b *bench) {
	t := b.table(row{"RowKey": "1"})
	must(t.Delete(b.ctx, nil))
	must(t.CreateTable(b.ctx, nil))
	equal(t.selects(""), []string{})
}

func deleteTableMissing(b *bench) {
	_, err := b.service.DeleteTable(b.ctx, b.name("Go"), nil)
	refused("ResourceNotFound", err)
}

func listTablesWithFilter(b *bench) {
	names, prefix := b.prefixed("Filter", "abc")
	list := func(filter string) []string {
		return flat(must(b.listPages(aztables.ListTablesOptions{Filter: &filter})))
	}
	equal(list("TableName eq "+quote(names[1])), names[1:2])
	equal(list(prefix), names)
	equal(list("TableName eq "+quote(b.name("Go"))), []string{})
}

func listTablesPaged(b *bench) {
	names, prefix := b.prefixed("Paged", "abcdefg")
	pages := must(b.listPages(aztables.ListTablesOptions{Filter: &prefix, Top: to.Ptr(int32(3))}))
	for _, page := range pages {
		check(len(page) <= 3, "a page of %d tables", len(page))
	}
	equal(flat(pages), names)
}

func tableNameAnyCase(b *bench) {
	name := b.name("MixedCase")
	succeed(b.create(name))
	succeed(b.client(strings.ToUpper(name)).insert(row{"RowKey": "1", "Value": "kept"}))
	equal(b.client(strings.ToLower(name)).get("p", "1")["Value"], "kept")
}
