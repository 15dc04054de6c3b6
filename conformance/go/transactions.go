package main

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var transactions = []scenario{
	{"transaction_all_operations", transactionAllOperations},
	{"transaction_100_inserts", transaction100Inserts},
	{"transaction_101_operations", transaction101Operations},
	{"transaction_conflict_rolls_back", transactionConflictRollsBack},
	{"transaction_stale_etag_rolls_back", transactionStaleETagRollsBack},
	{"transaction_two_partitions", transactionTwoPartitions},
	{"transaction_duplicate_row", transactionDuplicateRow},
	{"transaction_missing_table", transactionMissingTable},
}

func (t table) submit(actions ...aztables.TransactionAction) error {
	_, err := t.SubmitTransaction(t.ctx, actions, nil)
	return err
}

func action(kind aztables.TransactionType, r row, etag *azcore.ETag) aztables.TransactionAction {
	return aztables.TransactionAction{ActionType: kind, Entity: r.encode(), IfMatch: etag}
}

func add(r row) aztables.TransactionAction {
	return action(aztables.TransactionTypeAdd, r, nil)
}

func adds(count int) []aztables.TransactionAction {
	actions := []aztables.TransactionAction{}
	for i := range count {
		actions = append(actions, add(row{"RowKey": fmt.Sprintf("%03d", i)}))
	}
	return actions
}

func transactionAllOperations(b *bench) {
	t := b.table()
	for _, rk := range []string{"deleted", "merged", "replaced", "upsert merged", "upsert replaced"} {
		succeed(t.insert(row{"RowKey": rk, "Old": int32(1)}))
	}
	fresh := func(rk string) row { return row{"RowKey": rk, "New": int32(2)} }
	// aztables turns an update without an ETag into an upsert, hence the ETagAny.
	succeed(t.submit(
		add(fresh("created")),
		action(aztables.TransactionTypeUpdateReplace, fresh("replaced"), to.Ptr(azcore.ETagAny)),
		action(aztables.TransactionTypeUpdateMerge, fresh("merged"), t.etag("p", "merged")),
		action(aztables.TransactionTypeInsertReplace, fresh("upsert replaced"), nil),
		action(aztables.TransactionTypeInsertMerge, fresh("upsert merged"), nil),
		action(aztables.TransactionTypeInsertMerge, fresh("upsert created"), nil),
		action(aztables.TransactionTypeDelete, fresh("deleted"), nil),
	))
	replaced := func(rk string) row { return row{"PartitionKey": "p", "RowKey": rk, "New": int32(2)} }
	merged := func(rk string) row { return row{"PartitionKey": "p", "RowKey": rk, "Old": int32(1), "New": int32(2)} }
	equal(must(t.query("")), []row{
		replaced("created"),
		merged("merged"),
		replaced("replaced"),
		replaced("upsert created"),
		merged("upsert merged"),
		replaced("upsert replaced"),
	})
}

func transaction100Inserts(b *bench) {
	t := b.table()
	succeed(t.submit(adds(100)...))
	equal(len(t.selects("")), 100)
}

func transaction101Operations(b *bench) {
	t := b.table()
	refused("InvalidInput", t.submit(adds(101)...))
	equal(t.selects(""), []string{})
}

func transactionConflictRollsBack(b *bench) {
	t := b.table(row{"RowKey": "2", "Value": "first"})
	err := t.submit(add(row{"RowKey": "1"}), add(row{"RowKey": "2", "Value": "second"}), add(row{"RowKey": "3"}))
	equal(refused("EntityAlreadyExists", err), 1)
	equal(must(t.query("")), []row{{"PartitionKey": "p", "RowKey": "2", "Value": "first"}})
}

func transactionStaleETagRollsBack(b *bench) {
	t := b.table(row{"RowKey": "1", "A": int32(1)})
	stale := t.etag("p", "1")
	must(t.update(row{"RowKey": "1", "A": int32(2)}, merge, nil))
	update := action(aztables.TransactionTypeUpdateReplace, row{"RowKey": "1", "A": int32(3)}, stale)
	equal(refused("UpdateConditionNotSatisfied", t.submit(add(row{"RowKey": "0"}), update)), 1)
	equal(must(t.query("")), []row{{"PartitionKey": "p", "RowKey": "1", "A": int32(2)}})
}

func transactionTwoPartitions(b *bench) {
	t := b.table()
	err := t.submit(add(row{"RowKey": "1"}), add(row{"PartitionKey": "q", "RowKey": "2"}))
	refused("CommandsInBatchActOnDifferentPartitions", err)
	equal(t.selects(""), []string{})
}

func transactionDuplicateRow(b *bench) {
	t := b.table()
	again := action(aztables.TransactionTypeInsertMerge, row{"RowKey": "1"}, nil)
	refused("InvalidDuplicateRow", t.submit(add(row{"RowKey": "1"}), add(row{"RowKey": "2"}), again))
	equal(t.selects(""), []string{})
}

func transactionMissingTable(b *bench) {
	t := b.client(b.name("Go"))
	refused("TableNotFound", t.submit(add(row{"RowKey": "1"}), add(row{"RowKey": "2"})))
}
