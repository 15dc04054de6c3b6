package main

import (
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var service = []scenario{
	{"service_properties_round_trip", servicePropertiesRoundTrip},
	{"service_stats", serviceStats},
}

func servicePropertiesRoundTrip(b *bench) {
	before := must(b.service.GetProperties(b.ctx, nil)).ServiceProperties
	defer func() { must(b.service.SetProperties(b.ctx, before, nil)) }()

	days := func(count int32) *aztables.RetentionPolicy {
		return &aztables.RetentionPolicy{Enabled: to.Ptr(true), Days: &count}
	}
	want := aztables.ServiceProperties{
		Logging: &aztables.Logging{
			Version:         to.Ptr("1.0"),
			Delete:          to.Ptr(true),
			Read:            to.Ptr(false),
			Write:           to.Ptr(true),
			RetentionPolicy: days(5),
		},
		HourMetrics: &aztables.Metrics{
			Version:         to.Ptr("1.0"),
			Enabled:         to.Ptr(true),
			IncludeAPIs:     to.Ptr(true),
			RetentionPolicy: days(7),
		},
		MinuteMetrics: &aztables.Metrics{
			Version:         to.Ptr("1.0"),
			Enabled:         to.Ptr(false),
			RetentionPolicy: &aztables.RetentionPolicy{Enabled: to.Ptr(false)},
		},
		Cors: []*aztables.CorsRule{{
			AllowedOrigins:  to.Ptr("http://www.contoso.com,http://www.fabrikam.com"),
			AllowedMethods:  to.Ptr("GET,PUT"),
			AllowedHeaders:  to.Ptr("x-ms-meta-abc,x-ms-meta-data*"),
			ExposedHeaders:  to.Ptr("x-ms-meta-abc,x-ms-meta-data*"),
			MaxAgeInSeconds: to.Ptr(int32(500)),
		}},
	}
	must(b.service.SetProperties(b.ctx, want, nil))
	got := must(b.service.GetProperties(b.ctx, nil)).ServiceProperties
	equal(got.Logging, want.Logging)
	equal(got.HourMetrics, want.HourMetrics)
	equal(got.MinuteMetrics, want.MinuteMetrics)
	equal(got.Cors, want.Cors)
}

// aztables asks for statistics where it is pointed to, so it is pointed to the secondary endpoint.
func serviceStats(b *bench) {
	secondary := strings.Replace(endpoint, "//"+account+".", "//"+account+"-secondary.", 1)
	if strings.HasSuffix(endpoint, "/"+account) {
		secondary = endpoint + "-secondary"
	}
	service := must(aztables.NewServiceClientWithSharedKey(secondary, credential, options))
	replication := must(service.GetStatistics(b.ctx, nil)).GeoReplication
	switch *replication.Status {
	case aztables.GeoReplicationStatusLive:
		check(!replication.LastSyncTime.IsZero(), "live without a time")
	case aztables.GeoReplicationStatusBootstrap, aztables.GeoReplicationStatusUnavailable:
	default:
		check(false, "unknown status %s", *replication.Status)
	}
}
