package main

import (
	"fmt"
	"math/rand"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var queries = []scenario{
	{"query_all_in_key_order", queryAllInKeyOrder},
	{"query_paging_2500", queryPaging2500},
	{"query_page_size_and_resume", queryPageSizeAndResume},
	{"query_filter_partition", queryFilterPartition},
	{"query_filter_row_range", queryFilterRowRange},
	{"query_filter_or_of_rows", queryFilterOrOfRows},
	{"query_filter_each_type", queryFilterEachType},
	{"query_filter_not_and_or", queryFilterNotAndOr},
	{"query_filter_quotes", queryFilterQuotes},
	{"query_filter_missing_property", queryFilterMissingProperty},
	{"query_filter_bad_syntax", queryFilterBadSyntax},
	{"query_select_missing_property", querySelectMissingProperty},
	{"query_empty_result", queryEmptyResult},
}

func (t table) insertMany(pk string, count int) {
	for start := 0; start < count; start += 100 {
		actions := []aztables.TransactionAction{}
		for i := start; i < min(start+100, count); i++ {
			actions = append(actions, add(row{"PartitionKey": pk, "RowKey": fmt.Sprintf("%05d", i)}))
		}
		succeed(t.submit(actions...))
	}
}

func (b *bench) letters() table {
	rows := []row{{"PartitionKey": "q", "RowKey": "c"}}
	for _, letter := range "abcde" {
		rows = append(rows, row{"RowKey": string(letter)})
	}
	return b.table(rows...)
}

func queryAllInKeyOrder(b *bench) {
	want := []row{}
	for _, pk := range []string{"", "10", "9", "A", "Z", "a", "b", "z", "é"} {
		for _, rk := range []string{"1", "10", "2", "B", "a"} {
			want = append(want, row{"PartitionKey": pk, "RowKey": rk})
		}
	}
	t := b.table()
	for _, i := range rand.Perm(len(want)) {
		succeed(t.insert(want[i]))
	}
	equal(must(t.query("")), want)
}

func queryPaging2500(b *bench) {
	t := b.table()
	for _, pk := range "abcde" {
		t.insertMany(string(pk), 500)
	}
	pages := must(t.pages(aztables.ListEntitiesOptions{}))
	seen := map[string]bool{}
	for _, page := range pages {
		check(len(page) <= 1000, "a page of %d rows", len(page))
		for _, r := range page {
			seen[fmt.Sprint(r["PartitionKey"], "/", r["RowKey"])] = true
		}
	}
	equal(len(flat(pages)), 2500)
	equal(len(seen), 2500)
}

func queryPageSizeAndResume(b *bench) {
	t := b.table()
	t.insertMany("p", 25)
	top := to.Ptr(int32(10))
	first := must(t.NewListEntitiesPager(&aztables.ListEntitiesOptions{Top: top}).NextPage(b.ctx))
	equal(len(first.Entities), 10)
	rows := []row{}
	for _, body := range first.Entities {
		rows = append(rows, decode(body))
	}
	rest := must(b.client(t.name).pages(aztables.ListEntitiesOptions{
		Top:              top,
		NextPartitionKey: first.NextPartitionKey,
		NextRowKey:       first.NextRowKey,
	}))
	for _, page := range rest {
		check(len(page) <= 10, "a page of %d rows", len(page))
	}
	want := []string{}
	for i := range 25 {
		want = append(want, fmt.Sprintf("%05d", i))
	}
	equal(rowKeys(append(rows, flat(rest)...)), want)
}

func queryFilterPartition(b *bench) {
	t := b.table(row{"RowKey": "1"}, row{"RowKey": "2"}, row{"PartitionKey": "q", "RowKey": "3"})
	equal(t.selects("PartitionKey eq 'p'"), []string{"1", "2"})
}

func queryFilterRowRange(b *bench) {
	t := b.letters()
	equal(t.selects("PartitionKey eq 'p' and RowKey ge 'b' and RowKey lt 'e'"), []string{"b", "c", "d"})
	equal(t.selects("PartitionKey eq 'p' and RowKey gt 'b' and RowKey le 'e'"), []string{"c", "d", "e"})
}

func queryFilterOrOfRows(b *bench) {
	filter := "PartitionKey eq 'p' and (RowKey eq 'e' or RowKey eq 'a' or RowKey eq 'c' or RowKey eq 'x')"
	equal(b.letters().selects(filter), []string{"a", "c", "e"})
}

func queryFilterEachType(b *bench) {
	guid := func(n int) string {
		four := strings.Repeat(fmt.Sprint(n), 4)
		return four + four + "-" + four + "-" + four + "-" + four + "-" + four + four + four
	}
	t := b.table()
	for n := 1; n <= 3; n++ {
		succeed(t.insert(row{
			"RowKey":    fmt.Sprint(n),
			"AnInt32":   int32(n),
			"AnInt64":   aztables.EDMInt64(n + 1099511627776),
			"ADouble":   float64(n) + 0.5,
			"ABoolean":  n > 2,
			"ADateTime": aztables.EDMDateTime(time.Date(2024, 1, n, 1, 2, 3, 456_000_000, time.UTC)),
			"AGuid":     aztables.EDMGUID(guid(n)),
			"ABinary":   aztables.EDMBinary{byte(n), 255},
			"AString":   fmt.Sprint("s", n),
		}))
	}
	for name, literal := range map[string]string{
		"AnInt32":   "2",
		"AnInt64":   "1099511627778L",
		"ADouble":   "2.5",
		"ADateTime": "datetime'2024-01-02T01:02:03.456Z'",
		"AGuid":     "guid'" + guid(2) + "'",
		"ABinary":   "X'02ff'",
		"AString":   "'s2'",
	} {
		t.expect(name+" eq "+literal, "2")
		t.expect(name+" gt "+literal, "3")
		t.expect(name+" le "+literal, "1", "2")
	}
	t.expect("ABoolean eq true", "3")
	t.expect("ABoolean gt false", "3")
}

// expect checks which rows a filter selects and names the filter if they are others.
func (t table) expect(filter string, want ...string) {
	got := t.selects(filter)
	check(fmt.Sprint(got) == fmt.Sprint(want), "%s: expected %v, got %v", filter, want, got)
}

func queryFilterNotAndOr(b *bench) {
	t := b.table()
	for i, values := range [][2]int32{{1, 1}, {1, 2}, {2, 1}, {2, 2}} {
		succeed(t.insert(row{"RowKey": fmt.Sprint(i + 1), "A": values[0], "B": values[1]}))
	}
	t.expect("not (A eq 1)", "3", "4")
	t.expect("A eq 1 or A eq 2 and B eq 2", "1", "2", "4")
	t.expect("(A eq 1 or A eq 2) and B eq 2", "2", "4")
	t.expect("not (A eq 1 and B eq 1) and not (A eq 2 and B eq 2)", "2", "3")
}

func queryFilterQuotes(b *bench) {
	names := []string{"O'Brien", "O''Brien", "OBrien", "' or RowKey ne '"}
	t := b.table()
	for i, name := range names {
		succeed(t.insert(row{"RowKey": fmt.Sprint(i), "Name": name}))
	}
	for i, name := range names {
		t.expect("Name eq "+quote(name), fmt.Sprint(i))
	}
}

func queryFilterMissingProperty(b *bench) {
	t := b.table(row{"RowKey": "1", "A": int32(1)}, row{"RowKey": "2", "A": int32(2)}, row{"RowKey": "3", "B": int32(1)})
	t.expect("A eq 1", "1")
	t.expect("A ne 1", "2")
	t.expect("A lt 5", "1", "2")
}

func queryFilterBadSyntax(b *bench) {
	t := b.table(row{"RowKey": "1"})
	for _, filter := range []string{"aaa bbb ccc", "PartitionKey eq 'open", "(A eq 1"} {
		_, err := t.query(filter)
		refused("InvalidInput", err)
	}
}

// A null is read as the Int32 0 by EDMEntity.
func querySelectMissingProperty(b *bench) {
	t := b.table(row{"RowKey": "1", "A": int32(1)}, row{"RowKey": "2", "A": int32(2)})
	rows := flat(must(t.pages(aztables.ListEntitiesOptions{Select: to.Ptr("RowKey,Nowhere")})))
	equal(rowKeys(rows), []string{"1", "2"})
	for _, r := range rows {
		_, unselected := r["A"]
		check(!unselected && (r["Nowhere"] == nil || r["Nowhere"] == int32(0)), "got %v", r)
	}
}

func queryEmptyResult(b *bench) {
	t := b.table()
	equal(t.selects(""), []string{})
	succeed(t.insert(row{"RowKey": "1"}))
	equal(t.selects("PartitionKey eq 'p' and RowKey eq '2'"), []string{})
}
