package main

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var access = []scenario{
	{"sas_table_read_only", sasTableReadOnly},
	{"sas_table_key_range", sasTableKeyRange},
	{"sas_table_policy_and_revocation", sasTablePolicyAndRevocation},
	{"sas_account", sasAccount},
	{"sas_expired", sasExpired},
	{"access_policies_round_trip", accessPoliciesRoundTrip},
	{"wrong_key", wrongKey},
}

// sas returns a client of the table that has nothing but the signature. GetTableSASURL would be shorter, but it forgets
// the slash before the name of the table when the account stands in the path.
func (t table) sas(values aztables.SASSignatureValues, unsent ...string) table {
	values.TableName = t.name
	query := strings.Join(append(unsent, must(values.Sign(credential))), "&")
	client := must(aztables.NewClientWithNoCredential(endpoint+"/"+t.name+"?"+query, options))
	return table{t.ctx, t.name, client}
}

func sasTableReadOnly(b *bench) {
	t := b.table(row{"RowKey": "1", "A": int32(1)})
	reader := t.sas(aztables.SASSignatureValues{Permissions: "r", ExpiryTime: soon()})
	equal(reader.get("p", "1")["A"], int32(1))
	equal(reader.selects(""), []string{"1"})
	refused("AuthorizationPermissionMismatch", reader.insert(row{"RowKey": "2"}))
	refused("AuthorizationPermissionMismatch", reader.upsert(row{"RowKey": "2"}, merge))
	refused("AuthorizationPermissionMismatch", reader.delete("p", "1", nil))
	equal(t.selects(""), []string{"1"})
}

func sasTableKeyRange(b *bench) {
	t := b.table()
	for _, pk := range "abcde" {
		succeed(t.insert(row{"PartitionKey": string(pk), "RowKey": "5"}))
	}
	// aztables signs the range but leaves it out of the query string.
	ranged := t.sas(aztables.SASSignatureValues{
		Permissions:       "ra",
		ExpiryTime:        soon(),
		StartPartitionKey: "b",
		StartRowKey:       "6",
		EndPartitionKey:   "d",
		EndRowKey:         "5",
	}, url.Values{"spk": {"b"}, "srk": {"6"}, "epk": {"d"}, "erk": {"5"}}.Encode())
	succeed(ranged.insert(row{"PartitionKey": "b", "RowKey": "6"}))
	succeed(ranged.insert(row{"PartitionKey": "c", "RowKey": "0"}))
	for _, keys := range [][2]string{{"b", "4"}, {"d", "6"}, {"a", "7"}, {"e", "1"}} {
		refused("AuthorizationFailure", ranged.insert(row{"PartitionKey": keys[0], "RowKey": keys[1]}))
	}
	seen := []string{}
	for _, r := range must(ranged.query("")) {
		seen = append(seen, fmt.Sprint(r["PartitionKey"], r["RowKey"]))
	}
	equal(seen, []string{"b6", "c0", "c5", "d5"})
}

func (t table) setPolicies(policies ...*aztables.SignedIdentifier) {
	must(t.SetAccessPolicy(t.ctx, &aztables.SetAccessPolicyOptions{TableACL: policies}))
}

func sasTablePolicyAndRevocation(b *bench) {
	t := b.table(row{"RowKey": "1"})
	t.setPolicies(&aztables.SignedIdentifier{ID: to.Ptr("readers"), AccessPolicy: &aztables.AccessPolicy{
		Start:      to.Ptr(time.Now().Add(-time.Hour)),
		Expiry:     to.Ptr(soon()),
		Permission: to.Ptr("r"),
	}})
	reader := t.sas(aztables.SASSignatureValues{Identifier: "readers"})
	equal(reader.selects(""), []string{"1"})
	refused("AuthorizationPermissionMismatch", reader.insert(row{"RowKey": "2"}))
	t.setPolicies()
	_, err := reader.query("")
	refused("AuthenticationFailed", err)
}

// GetAccountSASURL allows https only, so the signature is made from its values.
func sasAccount(b *bench) {
	sas := must(aztables.AccountSASSignatureValues{
		Permissions:   aztables.AccountSASPermissions{Read: true, List: true, Add: true, Create: true}.String(),
		ResourceTypes: aztables.AccountSASResourceTypes{Service: true, Container: true, Object: true}.String(),
		Services:      "t",
		ExpiryTime:    soon(),
	}.Sign(credential))
	service := must(aztables.NewServiceClientWithNoCredential(endpoint+"/?"+sas.Encode(), options))
	name := b.name("Go")
	must(service.CreateTable(b.ctx, name, nil))
	t := table{b.ctx, name, service.NewClient(name)}
	succeed(t.insert(row{"RowKey": "1"}))
	succeed(t.submit(add(row{"RowKey": "2"})))
	equal(t.selects(""), []string{"1", "2"})
	refused("AuthorizationPermissionMismatch", t.delete("p", "1", nil))
}

func sasExpired(b *bench) {
	t := b.table(row{"RowKey": "1"})
	late := t.sas(aztables.SASSignatureValues{Permissions: "r", ExpiryTime: time.Now().Add(-time.Hour)})
	_, err := late.query("")
	refused("AuthenticationFailed", err)
}

func accessPoliciesRoundTrip(b *bench) {
	t := b.table()
	policies := func() []*aztables.SignedIdentifier {
		return must(t.GetAccessPolicy(b.ctx, nil)).SignedIdentifiers
	}
	equal(len(policies()), 0)
	start := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	expiry := start.AddDate(10, 0, 0)
	t.setPolicies(
		&aztables.SignedIdentifier{ID: to.Ptr("all"), AccessPolicy: &aztables.AccessPolicy{
			Start:      &start,
			Expiry:     &expiry,
			Permission: to.Ptr("raud"),
		}},
		&aztables.SignedIdentifier{ID: to.Ptr("no dates"), AccessPolicy: &aztables.AccessPolicy{Permission: to.Ptr("r")}},
	)
	got := policies()
	equal(len(got), 2)
	all, noDates := got[0], got[1]
	equal([]string{*all.ID, *all.AccessPolicy.Permission}, []string{"all", "raud"})
	equal([]time.Time{all.AccessPolicy.Start.UTC(), all.AccessPolicy.Expiry.UTC()}, []time.Time{start, expiry})
	equal([]string{*noDates.ID, *noDates.AccessPolicy.Permission}, []string{"no dates", "r"})
	check(noDates.AccessPolicy.Start == nil && noDates.AccessPolicy.Expiry == nil, "dates where none were set")
	t.setPolicies()
	equal(len(policies()), 0)
}

func wrongKey(b *bench) {
	t := b.table(row{"RowKey": "1"})
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("wrong", 13)))
	wrong := must(aztables.NewSharedKeyCredential(account, key))
	intruder := &bench{ctx: b.ctx, service: must(aztables.NewServiceClientWithSharedKey(endpoint, wrong, options))}
	_, err := intruder.listPages(aztables.ListTablesOptions{})
	refused("AuthenticationFailed", err)
	refused("AuthenticationFailed", intruder.create(b.name("Go")))
	_, err = intruder.service.DeleteTable(b.ctx, t.name, nil)
	refused("AuthenticationFailed", err)
	equal(t.selects(""), []string{"1"})
}
