// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"fmt"
	"slices"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

func textsOf(problems []FileProblem) (out []string) {
	for _, p := range problems {
		out = append(out, p.Text)
	}
	return out
}

// What is said of files before they are stored is what their status says afterwards.
func judged(s *stage) {
	leader := s.replica("leader", true)
	taken, key := platform("taken"), platform("judged")
	s.apply(taken, inline(hold("taken", "One", "true")))
	leader.look(taken)
	says := func(files map[string]string) (FilesVerdict, string, []string) {
		s.apply(key, inline(files))
		v := leader.Publisher.JudgeFiles(s.Context(), s.bundle(key))
		leader.look(key)
		b := s.bundle(key)
		return v, findCondition(b, policy.PolicyBundleReady).Reason, b.GetStatus().Errors
	}
	many := map[string]string{}
	for i := range most + 10 {
		many[fmt.Sprintf("f%d.rego", i)] = "package elsewhere\n\nx := 1\n"
	}
	for reason, files := range map[string]map[string]string{
		policy.PolicyBundleActivatedReason:     hold("judged", "Two", "true"),
		policy.PolicyBundleCompileFailedReason: broken,
		policy.PolicyBundleUnsupportedReason:   many,
		policy.PolicyBundleOutputInvalidReason: {"a.rego": "package extend.rollout.judged\n\nhold contains \"stop\" if true\n"},
	} {
		v, got, errors := says(files)
		if got != reason || !slices.Equal(textsOf(v.Problems), errors) || v.Unchecked != "" || len(v.Conflicts) > 0 {
			s.Errorf("%s: before it is stored it is %+v, afterwards %s %q", reason, v, got, errors)
		}
	}
	v, got, errors := says(hold("taken", "Three", "true"))
	if got != policy.PolicyBundleConflictReason || !slices.Equal(textsOf(v.Conflicts), errors) || len(v.Problems) > 0 {
		s.Errorf("a conflict: before it is stored it is %+v, afterwards %s %q", v, got, errors)
	}
	v, got, _ = says(with(hold("judged", "Four", "true"), "judged/a_test.rego", "package extend.rollout.judged_test\n\ntest_x if false\n"))
	if got != policy.PolicyBundleTestsFailedReason || !v.Tests || len(v.Problems) > 0 {
		s.Errorf("tests: before it is stored it is %+v, afterwards %s", v, got)
	}
	for _, k := range []Key{taken, key} {
		s.do(s.Delete(s.Context(), asObject(s.bundle(k))))
	}
}
