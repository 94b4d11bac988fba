// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

func TestBundles(t *testing.T) {
	s := newStage(t)
	for name, test := range map[string]func(*stage){
		"from the first day on":                     firstDay,
		"shadow, canary and promotion by one field": promotion,
		"a canary with kinds to protect":            kindsOfACanary,
		"going back on request":                     goingBack,
		"what is signed":                            signed,
		"a bundle of a namespace":                   ofNamespace,
		"a rollback is for all replicas":            rollback,
		"a canary that is given up":                 givenUp,
		"what is withheld is deleted, or in shadow": deletedWhileWithheld,
		"an archive that was changed later":         tampered,
		"a gate that fails":                         failing,
		"a check that ends the manager":             crashing,
		"a container without memory":                starving,
		"revisions that are lost":                   lost,
		"replicas that are gone":                    buried,
		"what the API server refuses":               refused,
		"a tenant gives way to the platform":        displaced,
		"files before they are stored":              judged,
	} {
		t.Run(name, func(t *testing.T) { test(s.on(t)) })
	}
}

func firstDay(s *stage) {
	key := platform("first")
	leader, other := s.replica("leader", true), s.replica("other", false)
	s.apply(key, inline(hold("first", "One", "true")))
	other.look(key)
	other.holds("")
	leader.look(key, key)
	other.look(key)
	s.says(key, "True Activated, active")
	if told := leader.told(); len(told) != 1 || !strings.HasPrefix(told[0], "Normal Activated Revision ") || leader.runs.n != 1 || other.runs.n != 0 {
		s.Errorf("the events are %q, after %d and %d gates", told, leader.runs.n, other.runs.n)
	}
	for _, r := range []*replica{leader, other} {
		r.holds("One")
	}
	leader.look(key)
	st := s.bundle(key).GetStatus()
	if len(st.Replicas) != 2 || len(st.Revisions) != 1 || st.Revisions[0].Replicas != 2 || st.Revisions[0].Revision != st.ActiveRevision {
		s.Errorf("the replicas are %+v, %+v", st.Replicas, st.Revisions)
	}

	s.apply(key, inline(broken))
	leader.look(key, key)
	other.look(key)
	s.says(key, "False CompileFailed Compiled, active")
	b := s.bundle(key)
	if e := b.GetStatus().Errors; len(e) == 0 || !strings.HasPrefix(e[0], "a.rego:2:") || !strings.Contains(e[0], " rego_parse_error ") {
		s.Errorf("the errors are %q", e)
	}
	if c := findCondition(b, policy.PolicyBundleTestsPassed); c.Status != metav1.ConditionUnknown || c.Reason != policy.PolicyBundleNotReachedReason {
		s.Errorf("tests: %+v", c)
	}
	if told := leader.told(); len(told) != 1 || !strings.HasPrefix(told[0], "Warning CompileFailed The newest files are not enforced: a.rego:2:") || !strings.Contains(told[0], " stays active.") {
		s.Errorf("the events are %q", told)
	}
	// A restart keeps what was good, without the gate.
	again := s.replica("again", false)
	again.start()
	for _, r := range []*replica{leader, other, again} {
		r.holds("One")
	}

	s.apply(key, inline(with(hold("first", "Two", "true"), "first/a_test.rego", "package extend.rollout.first_test\n\ntest_x if false\n")))
	leader.look(key, key)
	s.says(key, "False TestsFailed TestsPassed, active")
	runs := leader.runs.n
	leader.look(key)
	if leader.runs.n != runs {
		s.Error("the same was checked twice")
	}
	s.apply(key, inline(hold("first", "Two", "true")))
	leader.look(key)
	other.look(key)
	s.says(key, "True Activated, active")
	for _, r := range []*replica{leader, other} {
		r.holds("Two")
	}
	if kept := s.kept(key); len(kept) != 2 || kept[0].Namespace != "kruise-system" {
		s.Errorf("%d are kept", len(kept))
	}
	s.do(s.Delete(s.Context(), asObject(s.bundle(key))))
	leader.look(key)
	other.look(key)
	other.holds("")
}

func promotion(s *stage) {
	key := platform("promoted")
	leader, other := s.replica("leader", true), s.replica("other", false)
	look := func() { s.Helper(); leader.look(key, key); other.look(key) }
	holds := func(shop, bank string) {
		s.Helper()
		for _, r := range []*replica{leader, other} {
			r.holdsIn("shop", shop)
			r.holdsIn("bank", bank)
		}
	}
	s.apply(key, inline(hold("promoted", "One", "true")))
	look()
	s.apply(key, both(inline(hold("promoted", "Two", "true")), mode(policy.PolicyModeShadow)))
	look()
	s.says(key, "True InShadow, active, candidate")
	holds("One", "One")
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		holds("One", "One")
		me, err := other.Host.SyncBundle(s.Context(), s.bundle(key))
		s.do(err)
		if me.Shadow != nil && me.Shadow.Compared > 3 {
			break
		}
	}
	look()
	i := slices.IndexFunc(s.bundle(key).GetStatus().Replicas, func(r policy.PolicyReplica) bool { return r.Name == "other" })
	if sh := s.bundle(key).GetStatus().Replicas[i].Shadow; sh == nil || sh.Compared == 0 || len(sh.Differences) != 1 || sh.Differences[0].Point != "rollout/plan" {
		s.Errorf("the shadow is %+v", sh)
	}
	s.apply(key, mode(policy.PolicyModeCanary, "shop"))
	look()
	s.says(key, "True InCanary, active, candidate")
	if c := findCondition(s.bundle(key), policy.PolicyBundleReady); !strings.Contains(c.Message, " only. Elsewhere, revision ") || !strings.HasSuffix(c.Message, " stays active.") {
		s.Errorf("the canary says %s", c.Message)
	}
	holds("Two", "One")
	again := s.replica("again", false)
	again.start()
	again.holdsIn("shop", "Two")
	again.holdsIn("bank", "One")
	s.apply(key, mode(policy.PolicyModeEnforce))
	look()
	s.says(key, "True Activated, active")
	holds("Two", "Two")
	// What is only tried is not enforced any more.
	s.apply(key, mode(policy.PolicyModeShadow))
	look()
	s.says(key, "True InShadow, candidate")
	holds("", "")
	s.do(s.Delete(s.Context(), asObject(s.bundle(key))))
}

func kindsOfACanary(s *stage) {
	key := platform("kinds")
	leader := s.replica("leader", true)
	protects := func(kinds string) map[string]string {
		return map[string]string{"a.rego": "package extend.protection.kinds\n\nsettings := {" + kinds + "}\n"}
	}
	const breakGlass = `"breakGlass": {"users": ["ann"]}`
	for _, tc := range []struct {
		about string
		files map[string]string
		mode  policy.PolicyMode
		names string // of kinds that wait
	}{
		{"no settings of kinds", protects(breakGlass), policy.PolicyModeCanary, ""},
		{"a kind", protects(`"kinds": {"cronjobs.batch": {"cascading": ""}}`), policy.PolicyModeCanary, "cronjobs.batch"},
		{"kinds that are computed", protects(`"kinds": {k: {"cascading": ""} | some k in ["jobs.batch", "secrets"]}`), policy.PolicyModeCanary, "jobs.batch, secrets"},
		{"the same in shadow", protects(`"kinds": {"secrets": {"cascading": ""}}`), policy.PolicyModeShadow, ""},
		{"the same enforced", protects(`"kinds": {"secrets": {"cascading": ""}}`), policy.PolicyModeEnforce, ""},
		{"the same and another one, of which one is protected", protects(`"kinds": {"secrets": {"cascading": ""}, "jobs.batch": {"cascading": ""}}`), policy.PolicyModeCanary, "jobs.batch"},
		{"only what is protected", protects(breakGlass + `, "kinds": {"secrets": {"cascading": ""}}`), policy.PolicyModeCanary, ""},
		{"no protection at all", hold("kinds", "One", "true"), policy.PolicyModeCanary, ""},
	} {
		s.apply(key, both(inline(tc.files), mode(tc.mode, "shop")))
		leader.look(key, key)
		b := s.bundle(key)
		for _, name := range []string{policy.PolicyBundleActive, policy.PolicyBundleReady} {
			c := findCondition(b, name)
			want := ""
			if tc.names != "" {
				want = fmt.Sprintf(policy.PolicyBundleCanaryKindsMessage, tc.names)
			}
			if _, waits, _ := strings.Cut(c.Message, " Kinds to protect"); c.ObservedGeneration != b.GetGeneration() || waits != strings.TrimPrefix(want, "Kinds to protect") {
				s.Errorf("%s: %s is %s, %q; want %q at its end", tc.about, name, c.Reason, c.Message, want)
			}
		}
		if ready := findCondition(b, policy.PolicyBundleReady); ready.Status != metav1.ConditionTrue {
			s.Errorf("%s: %s", tc.about, ready.Message)
		}
	}
	s.do(s.Delete(s.Context(), asObject(s.bundle(key))))
}

func back(to string) func(policy.AnyPolicyBundle) {
	return func(b policy.AnyPolicyBundle) { b.(*policy.ClusterPolicyBundle).Spec.RollbackTo = to }
}

func goingBack(s *stage) {
	key := platform("back")
	leader := s.replica("leader", true)
	var first string
	for i := range keptRevisions + 2 {
		s.apply(key, inline(hold("back", fmt.Sprintf("R%d", i), "true")))
		leader.look(key)
		if i == 1 {
			first = s.bundle(key).GetStatus().ActiveRevision
		}
	}
	if kept := s.kept(key); len(kept) != keptRevisions+1 {
		s.Errorf("%d are kept", len(kept))
	}
	s.apply(key, back(first[:8]))
	leader.look(key, key)
	s.says(key, "True RolledBackOnRequest, active")
	leader.holds("R1")
	s.apply(key, inline(hold("back", "Newer", "true")))
	leader.look(key)
	leader.holds("R1")
	s.apply(key, back("abcdef012345"))
	leader.look(key)
	s.says(key, "False RevisionUnknown, active")
	leader.holds("R1")
	s.apply(key, back(""))
	leader.look(key)
	s.says(key, "True Activated, active")
	leader.holds("Newer")
	s.do(s.Delete(s.Context(), asObject(s.bundle(key))))
}

func signed(s *stage) {
	key := platform("signed")
	leader, other := s.replica("leader", true), s.replica("other", false)
	v, ours, theirs := s.server(), s.signer(), s.signer()
	s.apply(key, func(b policy.AnyPolicyBundle) {
		spec := &b.(*policy.ClusterPolicyBundle).Spec
		spec.HTTP = &policy.HTTPPolicySource{URL: v.URL + "/bundle.tar.gz?token=hidden"}
		spec.Verification = &policy.PolicyVerification{Keys: []policy.PolicyKey{{ID: "release", PublicKey: ours.public}}}
	})
	next := func(archive []byte, wantStatus, holds string) {
		s.Helper()
		v.have(archive)
		leader.now = leader.now.Add(time.Hour)
		leader.look(key)
		other.look(key)
		s.says(key, wantStatus)
		leader.holds(holds)
		other.holds(holds)
	}
	next(nil, "False FetchFailed Fetched", "")
	if m := findCondition(s.bundle(key), policy.PolicyBundleReady).Message; strings.Contains(m, "secret") || strings.Contains(m, "hidden") {
		s.Errorf("the message tells too much: %s", m)
	}
	two := s.archive(hold("signed", "Two", "true"), 2)
	next(two, "False SignatureInvalid Verified", "")
	next(theirs.sign(two), "False SignatureInvalid Verified", "")
	next(ours.sign(two), "True Activated, active", "Two")
	next(ours.sign(s.archive(hold("signed", "Two", "true"), 1)), "False OlderSequence Verified, active", "Two")
	if m := findCondition(s.bundle(key), policy.PolicyBundleReady).Message; !strings.Contains(m, "its files are those that are active") {
		s.Errorf("of the same files it says: %s", m)
	}
	next(ours.sign(s.archive(hold("signed", "One", "true"), 1)), "False OlderSequence Verified, active", "Two")
	message := findCondition(s.bundle(key), policy.PolicyBundleReady).Message
	_, older, ok := strings.Cut(message, "spec.rollbackTo: ")
	if !ok {
		s.Fatalf("the message does not say how: %s", message)
	}
	s.apply(key, back(strings.Fields(older)[0][:12]))
	next(ours.sign(s.archive(hold("signed", "One", "true"), 1)), "True RolledBackOnRequest, active", "One")
	s.apply(key, back(""))
	next(nil, "False FetchFailed Fetched, active", "One")
	next(ours.sign(s.archive(hold("signed", "Three", "true"), 3)), "True Activated, active", "Three")

	// What was let in by a key that was taken away is not enforced, after a restart neither.
	mine := s.bundle(key).(*policy.ClusterPolicyBundle).Spec.Verification.Keys[0].PublicKey
	s.apply(key, func(b policy.AnyPolicyBundle) {
		b.(*policy.ClusterPolicyBundle).Spec.Verification.Keys[0].PublicKey = theirs.public
	})
	leader.look(key)
	s.says(key, "False SignatureRevoked Verified, active")
	if c := findCondition(s.bundle(key), policy.PolicyBundleReady); !strings.Contains(c.Message, "names no key, and no key of spec.verification.keys has made it") {
		s.Errorf("it says %s", c.Message)
	}
	again := s.replica("again", false)
	again.start()
	for _, r := range []*replica{leader, again} {
		r.strict("shop", key.Name)
	}
	s.apply(key, func(b policy.AnyPolicyBundle) {
		b.(*policy.ClusterPolicyBundle).Spec.Verification.Keys[0].PublicKey = mine
	})
	leader.look(key)
	again.look(key)
	s.says(key, "True Activated, active")
	for _, r := range []*replica{leader, again} {
		r.holds("Three")
	}
	s.do(s.Delete(s.Context(), asObject(s.bundle(key))))
}

func ofNamespace(s *stage) {
	key := tenant("shop", "own")
	leader, other := s.replica("leader", true), s.replica("other", false)
	s.apply(key, inline(hold("own", "Own", "true")))
	leader.look(key, key)
	other.look(key)
	s.says(key, "True Activated, active")
	for _, r := range []*replica{leader, other} {
		r.holdsIn("shop", "Own")
		r.holdsIn("bank", "")
	}
	if kept := s.kept(key); len(kept) != 1 || kept[0].Namespace != "shop" {
		s.Errorf("%d are kept", len(kept))
	}
	for _, tc := range []struct {
		files      map[string]string
		want, text string
	}{
		{map[string]string{"a.rego": "package override.rollout\nplan := {}"}, "False Unsupported ContractOK, active", "only platform engineers may replace a decision"},
		{map[string]string{"a.rego": "package extend.rollout.own\nhold contains h if some h in data.extend.rollout.other.hold"}, "False Unsupported ContractOK, active", "data.extend.rollout.other"},
		// The whole line is quoted, and no condition has room for it.
		{map[string]string{"a.rego": "package extend.rollout.own\nhold contains [" + strings.Repeat("1, ", 20_000)}, "False CompileFailed Compiled, active", "a.rego:2:"},
	} {
		s.apply(key, inline(tc.files))
		leader.look(key)
		s.says(key, tc.want)
		if e := s.bundle(key).GetStatus().Errors; len(e) == 0 || !strings.Contains(e[0], tc.text) {
			s.Errorf("the errors are %q", e)
		}
	}
	// A tenant may not have the manager ask servers that the platform does not list.
	s.apply(key, func(b policy.AnyPolicyBundle) {
		b.(*policy.PolicyBundle).Spec.PolicySource = policy.PolicySource{HTTP: &policy.HTTPPolicySource{URL: s.server().URL}}
	})
	leader.look(key)
	s.says(key, "False SourceInvalid Fetched, active")
	s.apply(key, func(b policy.AnyPolicyBundle) {
		b.(*policy.PolicyBundle).Spec.PolicySource = policy.PolicySource{ConfigMap: &policy.ConfigMapPolicySource{Name: "policies"}}
	})
	leader.look(key)
	if e := s.bundle(key).GetStatus().Errors; len(e) != 1 || !strings.Contains(e[0], "shop/policies") {
		s.Errorf("the errors are %q", e)
	}
	s.do(s.Create(s.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "policies"}, Data: map[string]string{"own.rego": hold("own", "Mapped", "true")["own/a.rego"]}}))
	leader.look(key)
	s.says(key, "True Activated, active")
	leader.holdsIn("shop", "Mapped")
	s.do(s.Delete(s.Context(), asObject(s.bundle(key))))
}

func displaced(s *stage) {
	mine, theirs := tenant("shop", "displaced"), platform("displacing")
	leader := s.replica("leader", true)
	s.apply(mine, inline(hold("freeze", "Mine", "true")))
	leader.look(mine)
	leader.holds("Mine")
	s.apply(theirs, inline(hold("freeze", "Platform", "true")))
	leader.look(theirs, mine)
	leader.holds("Platform")
	s.says(theirs, "True Activated, active")
	s.says(mine, "False Conflict ContractOK")
	s.do(s.Delete(s.Context(), asObject(s.bundle(theirs))))
	leader.look(theirs, mine)
	s.says(mine, "True Activated, active")
	leader.holds("Mine")
	s.do(s.Delete(s.Context(), asObject(s.bundle(mine))))
}
