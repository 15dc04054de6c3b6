package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

const (
	merge   = aztables.UpdateModeMerge
	replace = aztables.UpdateModeReplace
)

var entities = []scenario{
	{"insert_and_get_all_types", insertAndGetAllTypes},
	{"insert_conflict", insertConflict},
	{"insert_null_property", insertNullProperty},
	{"insert_empty_string_and_binary", insertEmptyStringAndBinary},
	{"insert_unicode", insertUnicode},
	{"insert_special_characters_in_keys", insertSpecialCharactersInKeys},
	{"insert_empty_keys", insertEmptyKeys},
	{"insert_missing_table", insertMissingTable},
	{"get_missing_entity", getMissingEntity},
	{"get_with_select", getWithSelect},
	{"insert_special_doubles", insertSpecialDoubles},
	{"insert_int64_extremes", insertInt64Extremes},
	{"insert_dates_with_fractions", insertDatesWithFractions},
	{"update_replace", updateReplace},
	{"update_merge", updateMerge},
	{"upsert_replace", upsertReplace},
	{"upsert_merge", upsertMerge},
	{"update_missing_entity", updateMissingEntity},
	{"update_with_etag", updateWithETag},
	{"update_with_stale_etag", updateWithStaleETag},
	{"etag_race", etagRace},
	{"delete_entity", deleteEntity},
	{"delete_with_stale_etag", deleteWithStaleETag},
	{"delete_missing_entity", deleteMissingEntity},
	{"limit_property_value", limitPropertyValue},
	{"limit_properties", limitProperties},
	{"limit_entity_size", limitEntitySize},
}

// roundTrip inserts one row and checks that it is read back with the same values and types, and nothing else.
func roundTrip(b *bench, r row) {
	r["PartitionKey"], r["RowKey"] = "p", "1"
	equal(b.table(r).get("p", "1"), r)
}

func keysRoundTrip(b *bench, pk, rk string) {
	t := b.table()
	r := row{"PartitionKey": pk, "RowKey": rk, "Value": "first"}
	succeed(t.insert(r))
	r["Value"] = "second"
	must(t.update(r, replace, nil))
	equal(t.get(pk, rk), r)
	succeed(t.delete(pk, rk, nil))
	refused("ResourceNotFound", t.tryGet(pk, rk))
}

func insertAndGetAllTypes(b *bench) {
	roundTrip(b, row{
		"AString":   "text",
		"AnInt32":   int32(-2147483648),
		"AnInt64":   aztables.EDMInt64(1099511627776),
		"ADouble":   0.1,
		"ABoolean":  true,
		"ADateTime": aztables.EDMDateTime(time.Date(2024, 2, 29, 12, 34, 56, 789_000_000, time.UTC)),
		"AGuid":     aztables.EDMGUID("c9da6455-213d-42c9-9a79-3e9149a57833"),
		"ABinary":   aztables.EDMBinary{0, 1, 127, 128, 255},
	})
}

func insertConflict(b *bench) {
	t := b.table(row{"RowKey": "1", "Value": "first"})
	refused("EntityAlreadyExists", t.insert(row{"RowKey": "1", "Value": "second"}))
	equal(t.get("p", "1")["Value"], "first")
}

func insertNullProperty(b *bench) {
	t := b.table(row{"RowKey": "1", "Nothing": nil, "Something": int32(1)})
	equal(t.get("p", "1"), row{"PartitionKey": "p", "RowKey": "1", "Something": int32(1)})
}

func insertEmptyStringAndBinary(b *bench) {
	roundTrip(b, row{"Text": "", "Bytes": aztables.EDMBinary{}})
}

func insertUnicode(b *bench) {
	roundTrip(b, row{"Größe名": "Zażółć 日本語 😀"})
	keysRoundTrip(b, "Ключ 日本", "é😀𝄞")
}

func insertSpecialCharactersInKeys(b *bench) {
	keysRoundTrip(b, "it's 100% a+b & c:d", `''@home, %27 "x"=1;`)
}

// aztables refuses to address an empty PartitionKey, so that row is read by a filter.
func insertEmptyKeys(b *bench) {
	keysRoundTrip(b, "p", "")
	t := b.table(row{"PartitionKey": "", "RowKey": "", "Value": "kept"})
	rows := must(t.query("PartitionKey eq '' and RowKey eq ''"))
	equal(rows, []row{{"PartitionKey": "", "RowKey": "", "Value": "kept"}})
}

func insertMissingTable(b *bench) {
	refused("TableNotFound", b.client(b.name("Go")).insert(row{"RowKey": "1"}))
}

func getMissingEntity(b *bench) {
	refused("ResourceNotFound", b.table(row{"RowKey": "1"}).tryGet("p", "2"))
}

// GetEntity of aztables has no $select; a query for the one row has.
func getWithSelect(b *bench) {
	t := b.table(row{"RowKey": "1", "A": int32(1), "B": int32(2), "C": int32(3)})
	pages := must(t.pages(aztables.ListEntitiesOptions{
		Filter: to.Ptr("PartitionKey eq 'p' and RowKey eq '1'"),
		Select: to.Ptr("A,C"),
	}))
	equal(flat(pages), []row{{"PartitionKey": "", "RowKey": "", "A": int32(1), "C": int32(3)}})
}

// EDMEntity knows no special doubles, so they are written and read as plain JSON.
func insertSpecialDoubles(b *bench) {
	t := b.table()
	for _, value := range []string{"NaN", "Infinity", "-Infinity"} {
		body := fmt.Sprintf(`{"PartitionKey":"p","RowKey":%q,"D":%q,"D@odata.type":"Edm.Double"}`, value, value)
		must(t.AddEntity(b.ctx, []byte(body), nil))
		var members map[string]any
		succeed(json.Unmarshal(must(t.GetEntity(b.ctx, "p", value, nil)).Value, &members))
		equal(members["D"], value)
		equal(members["D@odata.type"], "Edm.Double")
	}
}

func insertInt64Extremes(b *bench) {
	roundTrip(b, row{
		"Smallest": aztables.EDMInt64(-9223372036854775808),
		"Largest":  aztables.EDMInt64(9223372036854775807),
	})
}

func insertDatesWithFractions(b *bench) {
	roundTrip(b, row{
		"Fraction": aztables.EDMDateTime(time.Date(2024, 2, 29, 12, 34, 56, 789_123_400, time.UTC)),
		"First":    aztables.EDMDateTime(time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC)),
		"Last":     aztables.EDMDateTime(time.Date(9999, 12, 31, 23, 59, 59, 999_999_900, time.UTC)),
	})
}

func updateReplace(b *bench) {
	t := b.table(row{"RowKey": "1", "A": int32(1), "B": int32(2)})
	must(t.update(row{"RowKey": "1", "B": int32(3)}, replace, nil))
	equal(t.get("p", "1"), row{"PartitionKey": "p", "RowKey": "1", "B": int32(3)})
}

func updateMerge(b *bench) {
	t := b.table(row{"RowKey": "1", "A": int32(1), "B": int32(2)})
	must(t.update(row{"RowKey": "1", "B": "three"}, merge, nil))
	equal(t.get("p", "1"), row{"PartitionKey": "p", "RowKey": "1", "A": int32(1), "B": "three"})
}

func upsertReplace(b *bench) {
	t := b.table()
	succeed(t.upsert(row{"RowKey": "1", "A": int32(1)}, replace))
	equal(t.get("p", "1"), row{"PartitionKey": "p", "RowKey": "1", "A": int32(1)})
	succeed(t.upsert(row{"RowKey": "1", "B": int32(2)}, replace))
	equal(t.get("p", "1"), row{"PartitionKey": "p", "RowKey": "1", "B": int32(2)})
}

func upsertMerge(b *bench) {
	t := b.table()
	succeed(t.upsert(row{"RowKey": "1", "A": int32(1)}, merge))
	succeed(t.upsert(row{"RowKey": "1", "B": int32(2)}, merge))
	equal(t.get("p", "1"), row{"PartitionKey": "p", "RowKey": "1", "A": int32(1), "B": int32(2)})
}

func updateMissingEntity(b *bench) {
	t := b.table()
	for _, mode := range []aztables.UpdateMode{replace, merge} {
		_, err := t.update(row{"RowKey": "1"}, mode, nil)
		refused("ResourceNotFound", err)
	}
	refused("ResourceNotFound", t.tryGet("p", "1"))
}

func updateWithETag(b *bench) {
	t := b.table(row{"RowKey": "1", "A": int32(1)})
	for _, mode := range []aztables.UpdateMode{replace, merge} {
		etag := t.etag("p", "1")
		updated := must(t.update(row{"RowKey": "1", "A": int32(1)}, mode, etag))
		check(updated != *etag, "the ETag is unchanged")
		equal(*t.etag("p", "1"), updated)
	}
}

func updateWithStaleETag(b *bench) {
	t := b.table(row{"RowKey": "1", "A": int32(1)})
	stale := t.etag("p", "1")
	must(t.update(row{"RowKey": "1", "A": int32(2)}, merge, nil))
	for _, mode := range []aztables.UpdateMode{replace, merge} {
		_, err := t.update(row{"RowKey": "1", "A": int32(3)}, mode, stale)
		refused("UpdateConditionNotSatisfied", err)
	}
	equal(t.get("p", "1")["A"], int32(2))
}

func etagRace(b *bench) {
	t := b.table(row{"RowKey": "1", "Winner": int32(-1)})
	etag := t.etag("p", "1")
	results := make([]error, 20)
	var group sync.WaitGroup
	for i := range results {
		group.Add(1)
		go func() {
			defer group.Done()
			_, results[i] = t.update(row{"RowKey": "1", "Winner": int32(i)}, replace, etag)
		}()
	}
	group.Wait()
	winners := []int32{}
	for i, err := range results {
		if err == nil {
			winners = append(winners, int32(i))
		} else {
			refused("UpdateConditionNotSatisfied", err)
		}
	}
	check(len(winners) == 1, "%d updates won", len(winners))
	equal(t.get("p", "1")["Winner"], winners[0])
}

func deleteEntity(b *bench) {
	t := b.table(row{"RowKey": "1"})
	succeed(t.delete("p", "1", nil))
	refused("ResourceNotFound", t.tryGet("p", "1"))
}

func deleteWithStaleETag(b *bench) {
	t := b.table(row{"RowKey": "1", "A": int32(1)})
	stale := t.etag("p", "1")
	must(t.update(row{"RowKey": "1", "A": int32(2)}, merge, nil))
	refused("UpdateConditionNotSatisfied", t.delete("p", "1", stale))
	equal(t.get("p", "1")["A"], int32(2))
}

func deleteMissingEntity(b *bench) {
	refused("ResourceNotFound", b.table().delete("p", "1", nil))
}

func limitPropertyValue(b *bench) {
	t := b.table(row{"RowKey": "fits", "Text": strings.Repeat("é", 32_768)})
	refused("PropertyValueTooLarge", t.insert(row{"RowKey": "too long", "Text": strings.Repeat("é", 32_769)}))
}

// filled returns a row with so many properties of one value.
func filled(rowKey string, count int, value any) row {
	r := row{"RowKey": rowKey}
	for i := range count {
		r[fmt.Sprintf("P%d", i)] = value
	}
	return r
}

func limitProperties(b *bench) {
	t := b.table(filled("fits", 252, 1))
	refused("TooManyProperties", t.insert(filled("too many", 253, 1)))
}

// A property of 32,768 characters counts 64 KiB, whatever the length of its JSON.
func limitEntitySize(b *bench) {
	text := strings.Repeat("x", 32_768)
	t := b.table(filled("fits", 15, text))
	refused("EntityTooLarge", t.insert(filled("too large", 16, text)))
}
