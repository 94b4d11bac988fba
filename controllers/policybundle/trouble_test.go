// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policyhost/hosttest"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
)

func rollback(s *stage) {
	for name, before := range map[string]map[string]string{"quick": hold("slow", "Quick", "true"), "none": nil} {
		key := platform("slow-" + name)
		leader, other := s.replica("leader", true), s.replica("other", false)
		holds := ""
		if before != nil {
			s.apply(key, inline(before))
			leader.look(key)
			other.look(key)
			holds = "Quick"
		}
		s.apply(key, inline(slow))
		leader.look(key)
		other.look(key)
		other.watch.TriggerRollback(s, other.Host.Engine())
		other.look(key)
		leader.told()
		leader.look(key, key)
		other.look(key)
		next := s.replica("next", true)
		next.start()
		next.look(key)
		status := "False RolledBack"
		if before != nil {
			status += ", active"
		}
		s.says(key, status)
		for _, r := range []*replica{leader, other, next} {
			if before != nil {
				r.holds(holds)
			} else {
				r.withholds(key)
			}
		}
		ready := findCondition(s.bundle(key), policy.PolicyBundleReady)
		if says := strings.Contains(ready.Message, "decisions of rollout/plan that it takes part in are refused or held") && strings.Contains(ready.Message, "until you change its files or its mode, or delete the bundle"); says != (before == nil) {
			s.Errorf("it says %s", ready.Message)
		}
		if told := leader.told(); len(told) != 1 || !strings.HasPrefix(told[0], "Warning RolledBack ") || !strings.Contains(told[0], "other rolled revision ") {
			s.Errorf("the events are %q", told)
		}
		if before == nil {
			beside := platform("beside")
			s.apply(beside, inline(hold("slow", "Beside", "true")))
			next.look(beside)
			s.says(beside, "False Conflict ContractOK")
			s.do(s.Delete(s.Context(), asObject(s.bundle(beside))))
			next.look(beside)
		}
		s.apply(key, inline(hold("slow", "Fixed", "true")))
		for _, r := range []*replica{next, leader, other} {
			r.look(key)
			r.holds("Fixed")
		}
		s.says(key, "True Activated, active")
		if w := s.bundle(key).GetStatus().Withheld; w != nil {
			s.Errorf("withheld is %+v", w)
		}
		s.do(s.Delete(s.Context(), asObject(s.bundle(key))))
	}
}

// withholds checks that a replica makes no decision that a bundle takes part in.
func (r *replica) withholds(key Key) {
	r.Helper()
	if got := hosttest.HoldReasons(r.Host.Engine(), "shop"); !strings.HasPrefix(got, "Error "+key.Name+"@") {
		r.Errorf("%s decides: %s", r.Host.Name(), got)
	}
}

// deletedWhileWithheld is of bundles that were rolled back and had nothing before them: with the object goes what they refuse.
func deletedWhileWithheld(s *stage) {
	for name, change := range map[string]func(key Key){
		"deleted":   func(key Key) { s.do(s.Delete(s.Context(), asObject(s.bundle(key)))) },
		"in-shadow": func(key Key) { s.apply(key, mode(policy.PolicyModeShadow)) },
	} {
		key, beside := platform("withheld-"+name), platform("beside-"+name)
		leader, other := s.replica("leader", true), s.replica("other", false)
		s.apply(beside, inline(hold("beside", "Beside", "true")))
		s.apply(key, both(inline(slow), mode(policy.PolicyModeCanary, "shop")))
		leader.look(beside, key)
		other.look(beside, key)
		other.watch.TriggerRollback(s, other.Host.Engine())
		other.look(key)
		leader.look(key)
		other.look(key)
		s.says(key, "False RolledBack")
		for _, r := range []*replica{leader, other} {
			r.withholds(key)
			r.holdsIn("bank", "Beside")
		}
		change(key)
		for _, r := range []*replica{leader, other} {
			r.look(key)
			r.holds("Beside")
		}
		if name == "in-shadow" {
			s.says(key, "True InShadow, candidate")
			s.do(s.Delete(s.Context(), asObject(s.bundle(key))))
		}
		s.do(s.Delete(s.Context(), asObject(s.bundle(beside))))
	}
}

func givenUp(s *stage) {
	key := platform("canary-slow")
	leader, other := s.replica("leader", true), s.replica("other", false)
	s.apply(key, inline(hold("slow", "Quick", "true")))
	leader.look(key)
	s.apply(key, both(inline(slow), mode(policy.PolicyModeCanary, "shop")))
	leader.look(key)
	other.look(key)
	s.says(key, "True InCanary, active, candidate")
	other.watch.TriggerRollback(s, other.Host.Engine())
	other.look(key)
	leader.look(key)
	other.look(key)
	s.says(key, "False RolledBack, active")
	for _, r := range []*replica{leader, other} {
		r.holdsIn("shop", "Quick")
		r.holdsIn("bank", "Quick")
	}
	s.do(s.Delete(s.Context(), asObject(s.bundle(key))))
}

func tampered(s *stage) {
	key := tenant("shop", "tampered")
	leader := s.replica("leader", true)
	s.apply(key, inline(hold("tampered", "Good", "true")))
	leader.look(key)
	rev := s.kept(key)[0]
	s.do(s.Delete(s.Context(), &rev))
	other := s.replica("other", false)
	other.look(key)
	says := func(want string) {
		s.Helper()
		st := s.bundle(key).GetStatus()
		i := slices.IndexFunc(st.Replicas, func(r policy.PolicyReplica) bool { return r.Name == "other" })
		if i < 0 || !strings.Contains(st.Replicas[i].Problem, want) {
			s.Errorf("the replicas are %+v, want %q", st.Replicas, want)
		}
	}
	says("is gone")
	forged := appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: rev.Name, Namespace: "shop", OwnerReferences: rev.OwnerReferences}, Revision: 1}
	forged.Data.Raw = []byte(`{"archive":"aGFja2Vk"}`)
	s.do(s.Create(s.Context(), &forged))
	other.look(key)
	other.start() // other bundles do not wait
	says("was changed")
	other.strict("shop", "shop/tampered")
	other.holdsIn("bank", "")
	leader.holds("Good")
	leader.look(key) // the leader has it still, and puts it back
	s.says(key, "False NotLoaded, active")
	if c := findCondition(s.bundle(key), policy.PolicyBundleReady); !strings.Contains(c.Message, " is not enforced by 1 of 2 replicas") || !strings.Contains(c.Message, "such as other: reading revision ") {
		s.Errorf("it says %s", c.Message)
	}
	other.look(key)
	other.holds("Good")
	leader.look(key)
	s.says(key, "True Activated, active")
	s.do(s.Delete(s.Context(), asObject(s.bundle(key))))
}

func lost(s *stage) {
	key := platform("lost")
	leader, other := s.replica("leader", true), s.replica("other", false)
	s.apply(key, inline(hold("lost", "One", "true")))
	leader.look(key)
	one := s.bundle(key).GetStatus().ActiveRevision
	s.apply(key, inline(hold("lost", "Two", "true")))
	leader.look(key)
	for _, rev := range s.kept(key) {
		s.do(s.Delete(s.Context(), &rev))
	}
	s.apply(key, back(one))
	leader.look(key)
	s.says(key, "False RevisionUnknown, active")
	leader.holds("Two")
	if st := s.bundle(key).GetStatus(); len(st.History) != 0 {
		s.Errorf("the history has what is lost: %+v", st.History)
	}
	other.look(key)
	s.apply(key, both(back(""), inline(hold("lost", "Broken", "input.nonesuch"))))
	leader.look(key)
	c := findCondition(s.bundle(key), policy.PolicyBundleReady)
	if !strings.Contains(c.Message, " stays active. But 1 of 2 replicas do not enforce it, such as other: reading revision ") {
		s.Errorf("it says %s", c.Message)
	}
	s.do(s.Delete(s.Context(), asObject(s.bundle(key))))
}

func failing(s *stage) {
	key := platform("failing")
	leader := s.replica("leader", true)
	s.apply(key, inline(hold("failing", "One", "true")))
	leader.runs.fail = errors.New("fork: no memory")
	if _, err := leader.Reconcile(s.Context(), key); err == nil || !strings.Contains(err.Error(), "fork: no memory") {
		s.Errorf("got %v: it is not tried again", err)
	}
	leader.runs.fail = nil
	leader.look(key)
	s.says(key, "True Activated, active")
	s.do(s.Delete(s.Context(), asObject(s.bundle(key))))
	for stage, status := range map[gate.Stage]string{gate.Limits: "False LimitsExceeded TestsPassed", gate.Replay: "False ReplayFailed ReplayOK"} {
		key := platform("failing-" + string(stage))
		s.apply(key, inline(hold(string(stage), "One", "true")))
		leader.runs.now = gate.Report{Refused: stage}
		leader.look(key)
		s.says(key, status)
		leader.runs.now = gate.Report{}
		leader.look(key) // a minute each time would be too much
		s.says(key, status)
		leader.now = leader.now.Add(passingHold + time.Second)
		leader.look(key)
		s.says(key, "True Activated, active")
		s.do(s.Delete(s.Context(), asObject(s.bundle(key))))
	}
}

// crashing is of a bundle whose check ends the manager, and each next leader.
func crashing(s *stage) {
	key, other := platform("crashing"), platform("innocent")
	s.apply(key, inline(hold("crashing", "One", "true")))
	var last *replica
	for n := range mostBegun {
		last = s.replica(fmt.Sprint("leader-", n), true)
		last.runs.crash = true
		func() {
			defer func() { _ = recover() }() // the process ends
			_, _ = last.Reconcile(s.Context(), key)
		}()
		if c := s.bundle(key).GetStatus().Checking; c == nil || c.Phase != policy.PolicyCheckRunning || c.Begun != int32(n+1) {
			s.Fatalf("after %d crashes the status has %+v", n+1, c)
		}
	}
	for range 2 { // the next leader, and the one after it
		next := s.replica("next", true)
		next.runs.crash = true
		next.look(key)
		s.says(key, "False CheckNeverEnded TestsPassed")
		if next.runs.n > 0 {
			s.Error("the check is begun once more")
		}
	}
	next := s.replica("next", true)
	s.apply(other, inline(hold("innocent", "Two", "true")))
	next.look(other)
	s.says(other, "True Activated, active")
	s.apply(key, inline(hold("crashing", "Other", "true")))
	next.look(key)
	s.says(key, "True Activated, active")
	if c := s.bundle(key).GetStatus().Checking; c != nil {
		s.Errorf("the check is over, and the status has %+v", c)
	}
	s.do(s.Delete(s.Context(), asObject(s.bundle(key))))
	s.do(s.Delete(s.Context(), asObject(s.bundle(other))))
}

// starving is of a manager whose container has no memory left.
func starving(s *stage) {
	key := platform("starving")
	leader := s.replica("leader", true)
	s.apply(key, inline(hold("starving", "One", "true")))
	leader.runs.fail = &gate.NoMemoryError{Left: 1 << 20}
	for range 2 * mostBegun {
		if _, err := leader.Reconcile(s.Context(), key); err == nil {
			s.Fatal("it is not tried again")
		}
		c := s.bundle(key).GetStatus().Checking
		if c == nil || c.Phase != policy.PolicyCheckWaiting || c.Begun != 0 || !strings.Contains(c.Message, "has 1 MiB of memory left") {
			s.Fatalf("the status has %+v", c)
		}
	}
	leader.runs.fail = nil
	leader.look(key)
	s.says(key, "True Activated, active")
	s.do(s.Delete(s.Context(), asObject(s.bundle(key))))
}

func buried(s *stage) {
	key := platform("buried")
	leader, other := s.replica("leader", true), s.replica("other", false)
	s.apply(key, inline(hold("buried", "One", "true")))
	leader.look(key)
	other.look(key)
	leader.Alive = func(context.Context) ([]string, error) { return []string{"leader"}, nil }
	leader.look(key)
	if st := s.bundle(key).GetStatus(); len(st.Replicas) != 1 || st.Replicas[0].Name != "leader" || len(st.Revisions) != 1 || st.Revisions[0].Replicas != 1 {
		s.Errorf("%+v", st)
	}
	s.do(s.Delete(s.Context(), asObject(s.bundle(key))))
}

func refused(s *stage) {
	files := inline(hold("a", "One", "true"))
	for name, tc := range map[string]struct {
		key    Key
		change func(policy.AnyPolicyBundle)
		want   string
	}{
		"no source": {platform("x"), func(policy.AnyPolicyBundle) {}, "Exactly one of files, configMap, oci and http"},
		"two sources": {platform("x"), both(files, func(b policy.AnyPolicyBundle) {
			b.(*policy.ClusterPolicyBundle).Spec.ConfigMap = &policy.ConfigMapPolicySource{Name: "x"}
		}), "Exactly one of files, configMap, oci and http"},
		"signed files": {platform("x"), both(files, func(b policy.AnyPolicyBundle) {
			b.(*policy.ClusterPolicyBundle).Spec.Verification = &policy.PolicyVerification{Keys: []policy.PolicyKey{{ID: "a", PublicKey: "-----BEGIN PUBLIC KEY-----"}}}
		}), "cannot be signed"},
		"a canary nowhere":     {platform("x"), both(files, mode(policy.PolicyModeCanary)), "The mode Canary needs canary.namespaces"},
		"a canary of a tenant": {tenant("shop", "x"), both(files, func(b policy.AnyPolicyBundle) { b.(*policy.PolicyBundle).Spec.Mode = policy.PolicyModeCanary }), `supported values: "Enforce", "Shadow"`},
		"a revision misspelt":  {platform("x"), both(files, back("v1")), "spec.rollbackTo"},
		"an address of no kind": {platform("x"), func(b policy.AnyPolicyBundle) {
			b.(*policy.ClusterPolicyBundle).Spec.HTTP = &policy.HTTPPolicySource{URL: "ftp://x"}
		}, "spec.http.url"},
		"an interval too short": {platform("x"), func(b policy.AnyPolicyBundle) {
			b.(*policy.ClusterPolicyBundle).Spec.OCI = &policy.OCIPolicySource{Reference: "x", Interval: &metav1.Duration{Duration: time.Second}}
		}, "An interval is 10s at least"},
		"a private key": {platform("x"), func(b policy.AnyPolicyBundle) {
			spec := &b.(*policy.ClusterPolicyBundle).Spec
			spec.ConfigMap = &policy.ConfigMapPolicySource{Name: "x"}
			spec.Verification = &policy.PolicyVerification{Keys: []policy.PolicyKey{{ID: "a", PublicKey: "-----BEGIN EC PRIVATE KEY-----"}}}
		}, "a private key stays with who signs"},
	} {
		b := emptyBundle(tc.key)
		b.SetName(tc.key.Name)
		b.SetNamespace(tc.key.Namespace)
		tc.change(b)
		if err := s.Create(s.Context(), asObject(b)); err == nil || !strings.Contains(err.Error(), tc.want) {
			s.Errorf("%s: got %v", name, err)
		}
	}
}
