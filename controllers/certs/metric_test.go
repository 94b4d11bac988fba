// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestTheMetricHasTheEndOfTheServedCertificate(t *testing.T) {
	registry := prometheus.NewRegistry()
	expiry, err := RegisterExpiry(registry)
	if err != nil {
		t.Fatal(err)
	}
	served := issue(t, service)
	leaf, _, err := parseChain(served.cert)
	if err != nil {
		t.Fatal(err)
	}
	f := newFiles(t, false)
	f.config.Expiry = expiry
	if err := f.syncFiles(t.Context()); err == nil || testutil.CollectAndCount(expiry) != 0 {
		t.Errorf("without a certificate there are %d values, %v", testutil.CollectAndCount(expiry), err)
	}
	f.reader = newFiles(t, false, secret(served)).reader
	for range 2 {
		if err := f.syncFiles(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := testutil.ToFloat64(expiry), float64(leaf.NotAfter.Unix()); got != want {
			t.Errorf("the certificate ends at %v, want %v", got, want)
		}
	}
	f.reader = newFiles(t, false, secret(pair{cert: []byte("x"), key: []byte("x")})).reader
	if err := f.syncFiles(t.Context()); err == nil || testutil.ToFloat64(expiry) != float64(leaf.NotAfter.Unix()) {
		t.Errorf("a certificate that is not served is measured: %v, %v", testutil.ToFloat64(expiry), err)
	}
	if _, err := RegisterExpiry(registry); err == nil {
		t.Error("the metric is registered twice")
	}
}
