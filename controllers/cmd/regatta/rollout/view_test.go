// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/charmbracelet/lipgloss"
	"github.com/google/go-cmp/cmp"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func TestView(t *testing.T) {
	unseen := snapshotOf(webSet(4, 2, func(s *kruise.CloneSet) { s.Status.ObservedGeneration = 1 }))
	unseen.silence, unseen.blind = errors.New("no manager is running\nsay where"), errors.New("watching its pods: forbidden")
	tests := []struct {
		name          string
		width, height int
		seen          seen
		want          string
	}{
		{
			name: "with room for everything", width: 80,
			seen: seen{snapshot: halfway(), at: noon()},
			want: `
CloneSet shop/web updating (RolloutInProgress)
RollingUpdate, InPlaceIfPossible, maxUnavailable 20%

updated    ███████████▒▒▒▒▒▒▒▒▒▒▒▒░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  4/10  40%
           2 of them available
pods       10 of 10, 8 available, 2 not (2 may be unavailable)
revisions  web-old  6 pods, 6 ready
           web-new  4 pods, 2 ready  <- the new one
zones      a  ████████▒▒▒▒▒▒▒▒░░░░  4/5, 2 unavailable
           b  ░░░░░░░░░░░░░░░░░░░░  0/5
because    5 held  OtherZoneFirst, rule one-zone.other
             CloneSet shop/web updates one zone at a time, so pods in zone b wa…
           2 updating  NotAvailable
             It has its revision, but it is not ready.
           1 waiting  MaxUnavailableReached
             It waits for others.
events       5s  UpdateHeld: OtherZoneFirst: Zone a first.
            60s  SuccessfulUpdatePodInPlace x4: successfully update pod web-1
decided    1s ago by manager-x

q quits; the rollout goes on
`,
		},
		{
			name: "in a small terminal the less important goes first, and lines are cut", width: 40, height: 14,
			seen: seen{snapshot: halfway(), at: noon()},
			want: `
CloneSet shop/web updating (RolloutInPr…
RollingUpdate, InPlaceIfPossible, maxUn…

updated    ███▒▒▒▒░░░░░░░░░░░  4/10  40%
pods       10 of 10, 8 available, 2 not…
revisions  web-old  6 pods, 6 ready
           web-new  4 pods, 2 ready  <-…
zones      a  ██▒▒░░  4/5, 2 unavailable
because    5 held  OtherZoneFirst, rule…
             CloneSet shop/web updates …
decided    1s ago by manager-x

q quits; the rollout goes on
`,
		},
		{
			name: "in a tiny one there is at least how far it is", width: 30, height: 7,
			seen: seen{snapshot: halfway(), at: noon()},
			want: `
CloneSet shop/web updating (R…
RollingUpdate, InPlaceIfPossi…

updated    █▒▒░░░░░  4/10  40%

q quits; the rollout goes on
`,
		},
		{
			name: "when it is complete", width: 60,
			seen: seen{snapshot: complete(), at: noon(), last: true},
			want: `
CloneSet shop/web complete
RollingUpdate, InPlaceIfPossible, maxUnavailable 20%

updated    █████████████████████████████████████  10/10 100%
           10 of them available
pods       10 of 10, 10 available (2 may be unavailable)
revisions  web-new  10 pods, 10 ready  <- the new one
decided    1s ago by manager-x
`,
		},
		{
			name: "node by node", width: 60,
			seen: seen{snapshot: onNodes(), at: noon()},
			want: `
CloneSet shop/web updating (RolloutInProgress)
RollingUpdate, InPlaceIfPossible, maxUnavailable 20%

updated    ███████▒▒▒▒▒▒▒▒░░░░░░░░░░░░░░░░░░░░░░░  4/10  40%
           2 of them available
pods       10 of 10, 8 available, 2 not (2 may be unavailab…
revisions  web-old  6 pods, 6 ready
           web-new  4 pods, 2 ready  <- the new one
nodes      node-1   moved: Selected
           node-12  held: Pressure, rule healthy.pressure
           node-3   waiting: MaxUnavailableReached
decided    1s ago by manager-x

q quits; the rollout goes on
`,
		},
		{
			name: "without the manager it goes on, and says what is missing", width: 60,
			seen: seen{at: noon(), snapshot: unseen},
			want: `
CloneSet shop/web not seen by the manager yet
RollingUpdate, InPlaceIfPossible, maxUnavailable 20%

updated    ███████▒▒▒▒▒▒▒▒░░░░░░░░░░░░░░░░░░░░░░░  4/10  40%
           2 of them available
pods       10 of 10, 8 available, 2 not
decided    no manager is running
           say where
           watching its pods: forbidden

q quits; the rollout goes on
`,
		},
		{
			name: "when nothing is to be updated", width: 60,
			seen: seen{at: noon(), snapshot: snapshotOf(webSet(0, 0, func(s *kruise.CloneSet) { s.Status.ExpectedUpdatedReplicas = 0 }))},
			want: `
CloneSet shop/web complete
RollingUpdate, InPlaceIfPossible, maxUnavailable 20%

updated    ███████████████████████████████████████  0/0 100%
           0 of them available
pods       10 of 10, 10 available

q quits; the rollout goes on
`,
		},
		{
			name: "after its deadline", width: 60, height: 8,
			seen: seen{at: noon(), last: true, snapshot: snapshotOf(webSet(4, 2, exceeded))},
			want: `
CloneSet shop/web deadline exceeded
RollingUpdate, InPlaceIfPossible, maxUnavailable 20%

updated    ███████▒▒▒▒▒▒▒▒░░░░░░░░░░░░░░░░░░░░░░░  4/10  40%
           2 of them available
pods       10 of 10, 8 available, 2 not
`,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := newStyles(lipgloss.NewRenderer(io.Discard)).renderView(tc.seen, tc.width, tc.height)
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if n := strings.Count(got, "\n"); tc.height > 0 && n >= tc.height {
				t.Errorf("%d lines and the cursor do not fit into %d", n, tc.height)
			}
		})
	}
}

func TestNoSizeIsTooSmallForTheView(t *testing.T) {
	st := newStyles(lipgloss.NewRenderer(io.Discard))
	for width := range 120 {
		for height := range 40 {
			st.renderView(seen{snapshot: halfway(), at: noon()}, width, height)
		}
	}
}
