// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/regatta-sh/regatta/controllers/explain"
)

func TestMerge(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	decided := func(s int64) explain.Answer { return explain.Answer{Decided: at(s)} }
	refused := func(s int64) explain.Answer { return explain.Answer{Decided: at(s), Request: &explain.Request{}} }
	for _, tc := range []struct {
		name    string
		replies []explain.Reply
		want    explain.Reply
	}{
		{"the newest answer, and the refusals of all, the latest first", []explain.Reply{
			{Answer: decided(1), Refusals: []explain.Answer{refused(5), refused(2)}}, {Answer: decided(4), Refusals: []explain.Answer{refused(3)}},
		}, explain.Reply{Answer: decided(4), Refusals: []explain.Answer{refused(5), refused(3), refused(2)}}},
		{"the one that knows not when it decided, where there is no other", []explain.Reply{{Answer: explain.Answer{Message: "x"}}}, explain.Reply{Answer: explain.Answer{Message: "x"}}},
		{"a refusal is no answer where there is one", []explain.Reply{{Answer: refused(9)}, {Answer: decided(1)}},
			explain.Reply{Answer: decided(1), Refusals: []explain.Answer{refused(9)}}},
		{"else the latest of them is", []explain.Reply{{Answer: refused(2), Refusals: []explain.Answer{refused(1)}}, {Answer: refused(3)}},
			explain.Reply{Answer: refused(3), Refusals: []explain.Answer{refused(2), refused(1)}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, MergeReplies(tc.replies), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
