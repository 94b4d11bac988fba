// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/engine"
)

func TestANamespaceWhosePoliciesDoNotCompileWithThePlatformsIsTold(t *testing.T) {
	h := &Host{name: "replica", rolledBack: make(chan Key, 10)}
	h.library = testLibrary(t, engine.WithInvalid(h.reportInvalid))
	h.engine = h.library.engine
	own := tenant("shop", "own")
	put(t, h.library, own, hold("own", "Own", "input.update > 0\n\nlist := true"))
	put(t, h.library, tenant("bank", "own"), hold("own", "Own", "input.update > 0"))
	follow := func() policy.PolicyReplica {
		me, err := h.SyncBundle(t.Context(), &policy.PolicyBundle{ObjectMeta: metav1.ObjectMeta{Namespace: own.Namespace, Name: own.Name}})
		if err != nil {
			t.Fatal(err)
		}
		return me
	}
	if me := follow(); me.Problem != "" || me.Revision == "" {
		t.Errorf("before: %+v", me)
	}
	put(t, h.library, platform("counts"), hold("counts", "Counts", "count(data.extend.rollout.own.list) > 3"))
	select {
	case key := <-h.RolledBack():
		if key != own {
			t.Errorf("looked at again is %s", key)
		}
	case <-time.After(time.Minute):
		t.Fatal("no bundle is looked at again")
	}
	if me := follow(); !strings.Contains(me.Problem, "the policies of namespace shop do not compile with those of the platform") || me.Revision != "" {
		t.Errorf("after: %+v", me)
	}
}

func TestABundleOfANamespaceThatTakesTooMuchMemoryIsRefused(t *testing.T) {
	l := testLibrary(t, engine.WithTenantBytes(1<<10))
	key := tenant("shop", "own")
	err := l.PutStages(t.Context(), key, Stages{Enforced: made(t, key, hold("own", "Own", "input.update > 0"))})
	if err == nil || !isPermanent(err) || !strings.Contains(err.Error(), "may take 1 KiB together") {
		t.Errorf("got %v", err)
	}
	put(t, l, platform("all"), hold("own", "Own", "input.update > 0"))
}

// What takes too long to be compiled stays refused until it changes, or is compiled after all: it is missing where nothing of it decides.
func TestABundleThatTakesLongToCompileIsUnfit(t *testing.T) {
	err := fmt.Errorf("activating bundles: %w", engine.SlowError{Within: time.Minute})
	if !isUnfit(err) || !isPermanent(err) {
		t.Errorf("unfit %v, standing %v", isUnfit(err), isPermanent(err))
	}
	h := &Host{name: "replica", rolledBack: make(chan Key, 10)}
	h.library = testLibrary(t)
	h.engine = h.library.engine
	put(t, h.library, platform("a"), hold("a", "A", "input.update > 0"))
	h.reportCompiledLate()
	if got := <-h.RolledBack(); got != platform("a") {
		t.Errorf("followed anew is %s", got)
	}
}
