// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
)

// Account is the user that requests of a manager in a namespace come from.
func Account(namespace string) string {
	return "system:serviceaccount:" + namespace + ":kruise-manager"
}

// Updates asks budgets whether a pod may be updated in place, for controllers of
// ours and by the account that their own requests come from. The hold is why not,
// nil if it may (CS-11). Without an answer in time the error says so.
func (l *Ledger) Updates(account string, recent *protection.Recent, patience time.Duration) func(context.Context, *corev1.Pod) (*decision.Hold, error) {
	return func(ctx context.Context, pod *corev1.Pod) (*decision.Hold, error) {
		asked := &protection.Asked{
			Request: points.Request{UID: "in-place-update-" + string(pod.UID), Operation: points.Update, User: points.User{Name: account}},
			Object:  points.Object{Version: "v1", Resource: "pods"},
		}
		asked.About(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		got, err := l.Ask(ctx, Question{Asked: asked, Recent: recent.Before(asked), Pod: pod})
		if err != nil || got.Output.Allow {
			return nil, err
		}
		return &got.Output.Reasons[0], nil
	}
}
