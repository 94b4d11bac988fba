// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"fmt"
	"testing"
	"time"
)

func TestChecksOfANamespaceAreLimited(t *testing.T) {
	now := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	var l judgeLimits
	for i := range judgeBurst + 1 {
		if got := l.allowCheck("shop", now); got != (i < judgeBurst) {
			t.Errorf("check %d of a namespace at one time: %v", i+1, got)
		}
		if !l.allowCheck("", now) {
			t.Error("a bundle of the platform is not checked")
		}
	}
	if !l.allowCheck("pay", now) {
		t.Error("one namespace limits another one")
	}
	if !l.allowCheck("shop", now.Add(judgeEvery)) || l.allowCheck("shop", now.Add(judgeEvery)) {
		t.Errorf("there is not one more check after %s", judgeEvery)
	}
}

func TestFewNamespacesAreRemembered(t *testing.T) {
	now := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	var l judgeLimits
	for i := range mostJudged {
		if !l.allowCheck(fmt.Sprint("n", i), now) {
			t.Fatalf("namespace %d is not checked", i)
		}
	}
	if l.allowCheck("another", now) {
		t.Error("a namespace too much is remembered")
	}
	if !l.allowCheck("another", now.Add(judgeEvery)) || len(l.namespaces) > mostJudged {
		t.Errorf("%d namespaces are remembered, and there is no room for another one", len(l.namespaces))
	}
}
