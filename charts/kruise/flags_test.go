// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/regatta-sh/regatta/controllers/manager"
)

// The manager of this checkout knows every flag that the chart gives it.
func TestTheManagerKnowsItsFlags(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"--set", "manager.pprofAddr=,manager.loggingFormat=json,manager.resyncPeriod=10h"},
		{"--set", `featureGates=AllAlpha=true\,ResourcesDeletionProtection=false`},
		decisionsToEverywhere(),
		verified(),
	} {
		options, err := manager.NewOptions()
		if err != nil {
			t.Fatal(err)
		}
		flags := pflag.NewFlagSet("kruise-manager", pflag.ContinueOnError)
		options.AddFlags(flags)
		if err := flags.Parse(container(t, render(t, args...)).Args); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}
