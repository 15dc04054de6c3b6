package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var (
	endpoint   = strings.TrimSuffix(os.Getenv("TABLES_ENDPOINT"), "/")
	account    = os.Getenv("TABLES_ACCOUNT")
	credential = must(aztables.NewSharedKeyCredential(account, os.Getenv("TABLES_KEY")))
	options    = &aztables.ClientOptions{ClientOptions: policy.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
)

var statusOf = map[string]int{
	"AuthenticationFailed":                    403,
	"AuthorizationFailure":                    403,
	"AuthorizationPermissionMismatch":         403,
	"CommandsInBatchActOnDifferentPartitions": 400,
	"EntityAlreadyExists":                     409,
	"EntityTooLarge":                          400,
	"InvalidDuplicateRow":                     400,
	"InvalidInput":                            400,
	"InvalidResourceName":                     400,
	"OutOfRangeInput":                         400,
	"PropertyValueTooLarge":                   400,
	"ResourceNotFound":                        404,
	"TableAlreadyExists":                      409,
	"TableNotFound":                           404,
	"TooManyProperties":                       400,
	"UpdateConditionNotSatisfied":             412,
}

// bench is what a scenario works with: clients for the endpoint under test and tables of its own.
type bench struct {
	ctx     context.Context
	service *aztables.ServiceClient
	names   []string
}

func newBench(ctx context.Context) *bench {
	return &bench{ctx: ctx, service: must(aztables.NewServiceClientWithSharedKey(endpoint, credential, options))}
}

// name returns a table name nobody else uses; the table is removed after the scenario if it exists then.
func (b *bench) name(prefix string) string {
	random := make([]byte, 8)
	must(rand.Read(random))
	name := prefix + hex.EncodeToString(random)
	b.names = append(b.names, name)
	return name
}

func (b *bench) clear() {
	for _, name := range b.names {
		b.service.DeleteTable(context.Background(), name, nil)
	}
}

func (b *bench) client(name string) table {
	return table{b.ctx, name, b.service.NewClient(name)}
}

// table returns a new table with the given rows in it.
func (b *bench) table(rows ...row) table {
	t := b.client(b.name("Go"))
	must(t.CreateTable(b.ctx, nil))
	for _, r := range rows {
		succeed(t.insert(r))
	}
	return t
}

// row holds the keys and typed properties of an entity. The partition key is "p" where it is not given.
type row map[string]any

// encode writes a row with the type annotations of EDMEntity. The keys are put in afterwards, because EDMEntity doubles
// the quotes in them and the client stores them so.
func (r row) encode() []byte {
	edm := aztables.EDMEntity{Properties: map[string]any{}}
	keys := map[string]any{"PartitionKey": "p"}
	for name, value := range r {
		if name == "PartitionKey" || name == "RowKey" {
			keys[name] = value
		} else {
			edm.Properties[name] = value
		}
	}
	var members map[string]json.RawMessage
	succeed(json.Unmarshal(must(json.Marshal(edm)), &members))
	for name, value := range keys {
		members[name] = must(json.Marshal(value))
	}
	return must(json.Marshal(members))
}

func decode(body []byte) row {
	var edm aztables.EDMEntity
	succeed(json.Unmarshal(body, &edm))
	r := row(edm.Properties)
	r["PartitionKey"], r["RowKey"] = edm.PartitionKey, edm.RowKey
	return r
}

// table is a client with the calls that scenarios make most.
type table struct {
	ctx  context.Context
	name string
	*aztables.Client
}

func (t table) insert(r row) error {
	_, err := t.AddEntity(t.ctx, r.encode(), nil)
	return err
}

func (t table) update(r row, mode aztables.UpdateMode, etag *azcore.ETag) (azcore.ETag, error) {
	reply, err := t.UpdateEntity(t.ctx, r.encode(), &aztables.UpdateEntityOptions{UpdateMode: mode, IfMatch: etag})
	return reply.ETag, err
}

func (t table) upsert(r row, mode aztables.UpdateMode) error {
	_, err := t.UpsertEntity(t.ctx, r.encode(), &aztables.UpsertEntityOptions{UpdateMode: mode})
	return err
}

func (t table) delete(pk, rk string, etag *azcore.ETag) error {
	_, err := t.DeleteEntity(t.ctx, pk, rk, &aztables.DeleteEntityOptions{IfMatch: etag})
	return err
}

func (t table) tryGet(pk, rk string) error {
	_, err := t.GetEntity(t.ctx, pk, rk, nil)
	return err
}

func (t table) get(pk, rk string) row {
	return decode(must(t.GetEntity(t.ctx, pk, rk, nil)).Value)
}

func (t table) etag(pk, rk string) *azcore.ETag {
	return to.Ptr(must(t.GetEntity(t.ctx, pk, rk, nil)).ETag)
}

func (t table) pages(options aztables.ListEntitiesOptions) ([][]row, error) {
	var pages [][]row
	for pager := t.NewListEntitiesPager(&options); pager.More(); {
		reply, err := pager.NextPage(t.ctx)
		if err != nil {
			return nil, err
		}
		page := []row{}
		for _, body := range reply.Entities {
			page = append(page, decode(body))
		}
		pages = append(pages, page)
	}
	return pages, nil
}

func (t table) query(filter string) ([]row, error) {
	options := aztables.ListEntitiesOptions{}
	if filter != "" {
		options.Filter = &filter
	}
	pages, err := t.pages(options)
	return flat(pages), err
}

// selects returns the row keys which a filter selects, in the order of the reply.
func (t table) selects(filter string) []string {
	return rowKeys(must(t.query(filter)))
}

func rowKeys(rows []row) []string {
	keys := []string{}
	for _, r := range rows {
		keys = append(keys, r["RowKey"].(string))
	}
	return keys
}

func flat[T any](pages [][]T) []T {
	all := []T{}
	for _, page := range pages {
		all = append(all, page...)
	}
	return all
}

func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

func soon() time.Time { return time.Now().Add(time.Hour) }

func must[T any](value T, err error) T {
	succeed(err)
	return value
}

func succeed(err error) {
	var reply *azcore.ResponseError
	if errors.As(err, &reply) {
		panic(fmt.Sprintf("%s is refused with %d %s", reply.RawResponse.Request.Method, reply.StatusCode, reply.ErrorCode))
	}
	if err != nil {
		panic(err)
	}
}

func check(holds bool, format string, args ...any) {
	if !holds {
		panic(fmt.Sprintf(format, args...))
	}
}

func equal(got, want any) {
	check(reflect.DeepEqual(got, want), "expected %v, got %v", want, got)
}

// refused checks that an error has the code and the status that belongs to it, and returns the failed index of a
// transaction, or -1.
func refused(code string, err error) int {
	check(err != nil, "expected %s, but the request succeeded", code)
	var reply *azcore.ResponseError
	check(errors.As(err, &reply), "expected %s, got %v", code, err)
	got, status, index := reply.ErrorCode, reply.StatusCode, -1
	if status == 202 {
		got, status, index = failedPart(string(must(runtime.Payload(reply.RawResponse))))
	}
	check(got == code && status == statusOf[code], "expected %s, got %d %s", code, status, got)
	return index
}

var (
	partStatus = regexp.MustCompile(`HTTP/1\.1 (\d+)`)
	partCode   = regexp.MustCompile(`"code":"(\w+)"`)
	partIndex  = regexp.MustCompile(`"value":"(\d+):`)
)

// failedPart reads the error of a transaction: aztables gives the reply as a whole, with its status 202 and no code.
func failedPart(body string) (code string, status, index int) {
	index = -1
	if found := partStatus.FindStringSubmatch(body); found != nil {
		status, _ = strconv.Atoi(found[1])
	}
	if found := partCode.FindStringSubmatch(body); found != nil {
		code = found[1]
	}
	if found := partIndex.FindStringSubmatch(body); found != nil {
		index, _ = strconv.Atoi(found[1])
	}
	return code, status, index
}
