// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"errors"
	"testing"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
)

// Copies are made at once. Which of them fails last says nothing: a condition that named its error would be another one in each round.
func TestTheReasonIsThatOfTheFirstNamespace(t *testing.T) {
	for _, order := range [][]string{{"bank", "shop"}, {"shop", "bank"}} {
		found := newFailures()
		for _, namespace := range order {
			found.addFailure(kruise.ResourceDistributionCreateResourceFailed, namespace, errors.New("exceeded quota of "+namespace))
		}
		got := (New(reconcile.Deps{})).buildCondition(&kruise.ResourceDistribution{}, kruise.ResourceDistributionCreateResourceFailed, found)
		if got.Reason != "exceeded quota of bank" {
			t.Errorf("in the order %v the reason is %q", order, got.Reason)
		}
	}
}
